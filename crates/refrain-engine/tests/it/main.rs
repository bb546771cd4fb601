//! The examples do what they say.

mod examples;
mod leases;

/// Built beside this test by `cargo test`, which says no more of where.
fn example(name: &str) -> String {
    let here = std::env::current_exe().unwrap_or_default();
    let example = here.ancestors().nth(2).unwrap_or(&here).join("examples").join(name);
    assert!(example.is_file(), "{}: `cargo test -p refrain-engine` builds it", example.display());
    example.to_string_lossy().into_owned()
}
