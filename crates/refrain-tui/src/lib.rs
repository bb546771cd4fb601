//! The door in a terminal: `refrain top`.
