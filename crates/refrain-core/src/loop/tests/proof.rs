//! Gates, judges, approval, protection, publishing, and what is carried from one run to the next.

pub(crate) mod approval;
pub(crate) mod carried;
pub(crate) mod gates;
pub(crate) mod judges;
pub(crate) mod protection;
pub(crate) mod publishing;
pub(crate) mod repository;
