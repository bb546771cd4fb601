//! Task files: what each shape says, what is refused, and that a changed status is the only byte that changes.

mod adding;
mod changing;
mod reading;
