//! Arguments of `plan show` and `plan check`: they inspect the plan that `plan run` would start.

use refrain_app::Context;
use refrain_app::error::RequestError;
use refrain_app::options::heading;
use refrain_app::options::variants::{AdaptedArgs, Difference};
use refrain_app::options::work::WorkArgs;
use refrain_app::plan::{HowArgs, PreparedPlan, RunPlan, SourceArgs, SpecArgs};
use refrain_core::LoopId;

use crate::out;

pub(super) mod check;
pub(super) mod show;

/// What a plan would be run with, for verbs that only look at it.
#[derive(Debug, clap::Args)]
pub(super) struct LookArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    spec: SpecArgs,
    /// The plan's id, as it will be given to plan run
    #[arg(long, value_name = "ID")]
    name: Option<LoopId>,
    #[command(flatten)]
    work: AdaptedArgs<WorkArgs, OnlyProof>,
}

/// Hides options that do not change what is shown, except those about gates: they are accepted, so that the command
/// line of `plan run` works, and not offered.
#[derive(Debug)]
struct OnlyProof;

impl Difference for OnlyProof {
    fn of(arg: clap::Arg) -> clap::Arg {
        let is_told = arg.get_help_heading() == Some(heading::PROOF);
        arg.hide(!is_told)
    }
}

impl LookArgs {
    /// The result of `plan run` with the same options, without starting it.
    pub(super) fn prepare(self, context: &Context) -> Result<PreparedPlan, RequestError> {
        let Self { source, spec, name, work } = self;
        let (how, work) = (HowArgs::default(), work.args);
        let request = RunPlan { source, spec, how, name, work, mirror: Vec::new() };
        PreparedPlan::of(context, request, &mut out::tell_note)
    }
}
