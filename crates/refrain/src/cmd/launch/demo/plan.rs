//! `refrain demo --plan`: three tasks in two waves; the gate of one refuses a claim.

use std::process::ExitCode;

use camino::Utf8Path;
use refrain_app::options::work::WorkArgs;
use refrain_app::plan::{SourceArgs, SpecArgs};
use refrain_app::{Context, RequestError};

use super::{agent, closing, read, repository};
use crate::cmd::plan::run::{RunArgs, run_plan};
use crate::out;
use crate::run::ShowArgs;

const FILES: [(&str, &str); 3] = [
    ("PLAN.md", include_str!("../../../../demo/PLAN.md")),
    ("check.sh", include_str!("../../../../demo/check.sh")),
    ("agent.sh", include_str!("../../../../demo/plan-agent.sh")),
];

/// Runs the plan, and prints where to look.
pub(super) fn run(context: &Context, dir: &Utf8Path) -> Result<ExitCode, RequestError> {
    repository(dir, &FILES, "A plan")?;
    out::print(&format!(
        "A small repository in {dir}: PLAN.md has three tasks, and check.sh checks them.\n\n"
    ));
    let source = SourceArgs { plan: Some("PLAN.md".into()), ..SourceArgs::default() };
    let work = WorkArgs { yes: true, ..agent(dir)? };
    let name = Some(read("demo")?);
    let spec = SpecArgs { verify: Some("./check.sh".to_owned()), ..SpecArgs::default() };
    let args = RunArgs { spec, ..RunArgs::default() };
    let code =
        run_plan(context, (source, args), (name, Vec::new()), (None, None), work, ShowArgs::default())?;
    out::print(&closing(
        code,
        "Tasks 1 and 2 ran at the same time; task 3 began when both had landed on main. The agent's first claim on task 2 \
         was refused.",
        dir,
    ));
    Ok(code)
}
