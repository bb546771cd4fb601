//! The vocabulary: values that all other modules use. Nothing here decides.

pub mod agent;
pub mod event;
pub mod glob;
pub mod hex;
pub mod ids;
pub mod mirror;
pub mod price;
pub mod signature;
pub mod spec;
pub mod splice;
pub(crate) mod status;
pub mod text;
pub mod values;
pub mod work;
