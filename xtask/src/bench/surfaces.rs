//! The cost of the program, its build and its surfaces.

pub(crate) mod build;
pub(crate) mod catalog;
pub(crate) mod contestants;
pub(crate) mod growth;
pub(crate) mod hosts;
pub(crate) mod running;
pub(crate) mod serve;
pub(crate) mod serving;
pub(crate) mod startup;
pub(crate) mod subject;
pub(crate) mod top;
pub(crate) mod web;
