//! Real git in temporary folders, with a home of their own.

#[cfg(test)]
mod apart;
#[cfg(test)]
mod checkouts;
#[cfg(test)]
mod clean;
#[cfg(test)]
mod commits;
#[cfg(test)]
mod evidence;
#[cfg(test)]
mod forges;
#[cfg(test)]
mod handover;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod landing;
#[cfg(test)]
mod looks;
#[cfg(test)]
mod objects;
#[cfg(test)]
mod odd_files;
#[cfg(test)]
mod place;
#[cfg(test)]
mod places;
#[cfg(test)]
mod pool;
#[cfg(test)]
mod protection;
#[cfg(test)]
mod publish;
#[cfg(test)]
mod saved;
#[cfg(test)]
mod secrets_told;
#[cfg(test)]
mod states;
#[cfg(test)]
mod trees;
#[cfg(test)]
mod work;
