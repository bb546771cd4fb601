//! Real git in temporary folders, with a home of their own.

mod commits;
mod place;
