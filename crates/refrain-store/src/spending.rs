//! The money that was spent: the ledger of budgets and the limits of accounts.

pub(crate) mod account;
pub(crate) mod budget;
