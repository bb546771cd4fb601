//! Checks of what loops need: what would hinder one, what dead runners left, and what to do about each. A file a kind
//! of thing; all of them only look, and what can be mended safely is returned as a [`Cure`](cure::Cure), which is
//! applied only when a person asks for it.

mod agents;
mod autostart;
mod budget;
mod checkouts;
mod checks;
mod configuration;
mod cure;
mod data_folders;
mod git;
mod leftovers;
mod loops;
mod machine;
mod pool;
mod reboot;

pub use autostart::{Autostart, AutostartChange};
pub use reboot::{interrupted_by_reboot, remember_this_boot};
