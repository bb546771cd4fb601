pub(crate) mod conclave;
pub(crate) mod demo;
pub(crate) mod drive;
pub(crate) mod implement;
pub(crate) mod research;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod start;
