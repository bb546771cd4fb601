//! `refrain generate`, hidden: writes the files in `docs/` that are made from the code. `cargo xtask generate` runs it.

use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_app::{Code, RequestError};
use refrain_core::Record;
use refrain_core::memory::Memory;
use refrain_core::plan::PlanEvent;
use refrain_core::plan::brief::TaskBrief;
use refrain_core::plan::view::{PlanCheck, Waves};
use refrain_core::view::checkup::Checkup;
use refrain_core::view::garbage::Garbage;
use refrain_core::view::notice::Notice;
use refrain_core::view::plan::PlanStatus;
use refrain_core::view::plugin::PluginStatus;
use refrain_core::view::report::{Report, Verdict};
use refrain_core::view::{DamagedRow, Status, usage};
use refrain_engine::{Key, TrustedContent};

use crate::cmd::inspect::report::PlanReport;
use crate::cmd::memory;
use crate::cmd::plan::{Rehearsal, TuneOutput};
use crate::cmd::setup::config::ConfigListing;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    dir: Utf8PathBuf,
}

/// A row of `list --json`: a loop, or a plan, as its `kind` says.
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is asked for")]
enum Row {
    /// A loop.
    Loop(Box<Status>),
    /// A plan.
    Plan(Box<PlanStatus>),
    /// A loop or a plan whose journal is damaged.
    Damaged(Box<DamagedRow>),
}

/// What `status --json` prints.
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is asked for")]
enum AnyReport<S> {
    /// It can be read.
    Readable(Box<S>),
    /// Its journal is damaged.
    Damaged(Box<DamagedRow>),
}

/// Writes the JSON Schemas and the reference of the command line.
pub(crate) fn run(args: &Args) -> Result<ExitCode, RequestError> {
    let schemas = [
        ("status", schemars::schema_for!(AnyReport<Status>)),
        ("list", schemars::schema_for!(Vec<Row>)),
        ("webhook", schemars::schema_for!(Notice)),
        ("plan-status", schemars::schema_for!(AnyReport<PlanStatus>)),
        ("plan-event", schemars::schema_for!(Record<PlanEvent>)),
        ("plan-dry-run", schemars::schema_for!(Rehearsal)),
        ("plan-tune", schemars::schema_for!(TuneOutput)),
        ("event", schemars::schema_for!(Record)),
        ("show", schemars::schema_for!(Vec<Record>)),
        ("show-plan", schemars::schema_for!(Vec<Record<PlanEvent>>)),
        ("usage", schemars::schema_for!(usage::Report)),
        ("report", schemars::schema_for!(Report)),
        ("report-plan", schemars::schema_for!(PlanReport)),
        ("verify", schemars::schema_for!(Verdict)),
        ("verify-plan", schemars::schema_for!(Vec<Verdict>)),
        ("plan-check", schemars::schema_for!(PlanCheck)),
        ("plan-waves", schemars::schema_for!(Waves)),
        ("plan-show", schemars::schema_for!(TaskBrief)),
        ("config", refrain_engine::config::schema()),
        ("config-get", schemars::schema_for!(refrain_engine::config::Entry)),
        ("config-show", schemars::schema_for!(ConfigListing)),
        ("plugin-status", schemars::schema_for!(Vec<PluginStatus>)),
        ("token-list", schemars::schema_for!(Vec<Key>)),
        ("trust-list", schemars::schema_for!(Vec<TrustedContent>)),
        ("memory-list", schemars::schema_for!(Vec<Memory>)),
        ("memory-proposals", schemars::schema_for!(Vec<memory::proposals::Row>)),
        ("doctor", schemars::schema_for!(Checkup)),
        ("gc", schemars::schema_for!(Vec<Garbage>)),
    ];
    let failed = |error: serde_json::Error| RequestError::new(Code::Failed, error.to_string());
    let mut described = refrain_server::http::openapi();
    described.sort_all_objects();
    let described = serde_json::to_string_pretty(&described).map_err(failed)?;
    write(&args.dir.join("schema"), "openapi.json", &described)?;
    for (name, schema) in schemas {
        let mut sorted = schema.to_value();
        // The order of maps depends on features of other crates.
        sorted.sort_all_objects();
        let schema = schemars::Schema::try_from(sorted).map_err(failed)?;
        let text = serde_json::to_string_pretty(&schema).map_err(failed)?;
        write(&args.dir.join("schema"), &format!("{name}.json"), &text)?;
    }
    for (name, text) in reference() {
        write(&args.dir.join("reference/cli"), &format!("{name}.md"), &text)?;
    }
    Ok(Code::Done.into())
}

#[expect(clippy::disallowed_methods, reason = "documentation in a work tree needs no crash promise")]
fn write(dir: &Utf8Path, name: &str, text: &str) -> Result<(), RequestError> {
    let path = dir.join(name);
    std::fs::create_dir_all(dir)
        .and_then(|()| std::fs::write(&path, format!("{}\n", text.trim_end())))
        .map_err(|error| RequestError::new(Code::Failed, format!("{path}: {error}")))
}

/// The pages of the command line by name: one a verb, with the help of the verbs below it, and a list of all.
fn reference() -> Vec<(String, String)> {
    let mut definition = crate::cli::definition().term_width(100);
    definition.build();
    let mut list =
        "# The command line\n\nMade by `cargo xtask generate` from the program's own help.\n\n".to_owned();
    list.push_str("`refrain loop VERB` is the same as `refrain VERB` for each verb about a loop.\n\n");
    list.push_str("| verb | what it does |\n|---|---|\n");
    let mut pages = Vec::new();
    for verb in definition.get_subcommands_mut() {
        let name = verb.get_name().to_owned();
        // The verbs below `loop` are those of the top level, each described there.
        if matches!(name.as_str(), "help" | "loop") {
            continue;
        }
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        list.push_str(&format!("| [`{name}`]({name}.md) | {about} |\n"));
        let mut page = format!("# refrain {name}\n\n{}", help(verb));
        for inner in verb.get_subcommands_mut().filter(|it| it.get_name() != "help" && !it.is_hide_set()) {
            page.push_str(&format!("\n## refrain {name} {}\n\n", inner.get_name()));
            page.push_str(&help(inner));
        }
        pages.push((name, page));
    }
    pages.push(("index".to_owned(), list));
    pages
}

fn help(verb: &mut clap::Command) -> String {
    let help = verb.render_long_help().to_string();
    let help: String = help.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    format!("```text\n{}\n```\n", help.trim_end())
}
