//! The adapters against streams that the real programs printed (`recordings/`, one folder an agent), and against
//! variants of them. Every module is listed here; one binary holds them all.

#[cfg(test)]
mod checkups;
#[cfg(test)]
mod counting;
#[cfg(test)]
mod ears;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod launches;
#[cfg(test)]
mod play;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod shown;
#[cfg(test)]
mod streams;
