//! What listing many loops would cost without a catalog, if each kept its status object in a JSON file: read and parse every
//! file of a folder. Nothing is kept, sorted or laid out, and nothing is printed but their number.

use std::error::Error;

use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: bench_parse FOLDER")?;
    let mut loops = 0;
    for entry in std::fs::read_dir(folder)? {
        let status: Value = serde_json::from_slice(&std::fs::read(entry?.path())?)?;
        loops += u32::from(status["id"].is_string());
    }
    #[expect(clippy::print_stdout, reason = "its result is what it prints")]
    {
        println!("{loops}");
    }
    Ok(())
}
