//! What the person who runs a fleet does: prepares machines, lists and drains workers, and finds what is wrong.

pub(crate) mod doctor;
mod fairness;
pub(crate) mod init;
#[cfg(test)]
mod replay;
mod rights;
pub(crate) mod roster;
