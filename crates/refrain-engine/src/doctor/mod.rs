//! Looking after the ground that loops stand on: what would hinder one, what dead runners left behind, and what to do about
//! each. A file a kind of thing; all of them only look, and what can be mended safely is said as a [`Cure`](cure::Cure),
//! which is taken only when a person asks for it.

mod agents;
mod autostart;
mod budget;
mod checkouts;
mod configuration;
mod cure;
mod examine;
mod git;
mod leftovers;
mod loops;
mod machine;
mod places;
mod pool;
mod reboot;

pub use autostart::{Autostart, AutostartChange};
pub use reboot::{interrupted_by_reboot, remember_this_boot};
