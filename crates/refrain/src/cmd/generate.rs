//! `refrain generate`, hidden: the files in `docs/` that are made from the code. `cargo xtask generate` runs it.

use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::Record;
use refrain_core::view::Status;
use refrain_core::view::checkup::Checkup;

use super::verify::Verdict;
use crate::error::{CliError, Code};

/// Write the generated documentation
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    dir: Utf8PathBuf,
}

/// Writes the JSON Schemas and the reference of the command line.
pub(crate) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let schemas = [
        ("status", schemars::schema_for!(Status)),
        ("list", schemars::schema_for!(Vec<Status>)),
        ("event", schemars::schema_for!(Record)),
        ("show", schemars::schema_for!(Vec<Record>)),
        ("verify", schemars::schema_for!(Verdict)),
        ("doctor", schemars::schema_for!(Checkup)),
    ];
    for (name, schema) in schemas {
        let failed = |error: serde_json::Error| CliError::new(Code::Failed, error.to_string());
        let mut sorted = schema.to_value();
        // Whether maps keep their order depends on what else is built in.
        sorted.sort_all_objects();
        let schema = schemars::Schema::try_from(sorted).map_err(failed)?;
        let text = serde_json::to_string_pretty(&schema).map_err(failed)?;
        write(&args.dir.join("schema"), &format!("{name}.json"), &text)?;
    }
    write(&args.dir, "cli.md", &reference())?;
    Ok(Code::Done.into())
}

#[expect(clippy::disallowed_methods, reason = "documentation in a work tree needs no crash promise")]
fn write(dir: &Utf8Path, name: &str, text: &str) -> Result<(), CliError> {
    let path = dir.join(name);
    std::fs::create_dir_all(dir)
        .and_then(|()| std::fs::write(&path, format!("{}\n", text.trim_end())))
        .map_err(|error| CliError::new(Code::Failed, format!("{path}: {error}")))
}

/// The help of every verb, one after the other.
fn reference() -> String {
    let mut definition = crate::cli::definition().term_width(100);
    definition.build();
    let mut text =
        String::from("# The command line\n\nMade by `cargo xtask generate` from the program's own help.\n");
    for verb in definition.get_subcommands_mut() {
        if ["help", "loop"].contains(&verb.get_name()) {
            continue;
        }
        let help = verb.render_long_help().to_string();
        let help: String = help.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        text.push_str(&format!("\n## refrain {}\n\n```text\n{}\n```\n", verb.get_name(), help.trim_end()));
    }
    text
}
