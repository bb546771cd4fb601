//! Real git in temporary folders, with a home of their own.

mod checkouts;
mod commits;
mod hooks;
mod odd_files;
mod place;
mod states;
