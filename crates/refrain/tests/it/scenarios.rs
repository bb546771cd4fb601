//! Sessions in plain text, one file a test: `scenarios/AREA/NAME.txt`. CONTRIBUTING.md says how they are written.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/scenarios")
}

macro_rules! scenarios {
    ($($area:ident: $($name:ident)*;)*) => {
        $(mod $area {
            $(#[test]
            fn $name() {
                let file = concat!(stringify!($area), "/", stringify!($name), ".txt");
                testkit::play(env!("CARGO_BIN_EXE_refrain"), &super::folder().join(file));
            })*
        })*

        const LISTED: &[&str] = &[$($(concat!(stringify!($area), "/", stringify!($name), ".txt")),*),*];
    };
}

scenarios! {
    lifecycle: churn iteration_cap lost_agent no_churn time_cap;
}

#[test]
fn every_file_is_listed() {
    let entries = |path: &Path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let files = entries(&folder()).flat_map(|area| entries(&area).collect::<Vec<_>>());
    let files: BTreeSet<_> =
        files.map(|file| file.strip_prefix(folder()).unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(files, LISTED.iter().map(|&name| name.to_owned()).collect());
}
