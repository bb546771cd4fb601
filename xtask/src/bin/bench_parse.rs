//! What listing many loops would cost without a catalog, if each kept its status object in a JSON file: read and parse every
//! file of a folder. Nothing is sorted or laid out, and nothing is printed but their number.

use std::error::Error;

use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: bench_parse FOLDER")?;
    let mut loops = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        loops.push(serde_json::from_slice::<Value>(&std::fs::read(entry?.path())?)?);
    }
    #[expect(clippy::print_stdout, reason = "its result is what it prints")]
    {
        println!("{}", loops.iter().filter(|status| status["id"].is_string()).count());
    }
    Ok(())
}
