//! Having an agent write a plan, for the user to edit. None of its tasks is run.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::gate::GateChoice;
use refrain_core::text::{printable, squeeze};
use refrain_engine::{EngineError, chain, check_folder, create, write_atomic};

use super::{HowArgs, PreparedPlan, RunPlan, SourceArgs, SpecArgs};
use crate::options::work::WorkArgs;
use crate::{Action, Code, Context, Note, RequestError, resolve};

#[derive(Debug, Default)]
pub struct NewPlan {
    pub idea: String,
    pub file: Utf8PathBuf,
    pub agent: Option<String>,
    pub command: Option<refrain_engine::config::Command>,
    pub model: Option<String>,
}

/// Has the plan written and checked; returns it as a run would find it. With problems it is there all the same, to be
/// edited.
pub fn new_plan(context: &Context, request: &NewPlan, note: Note<'_>) -> Result<PreparedPlan, RequestError> {
    context.check(Action::Start)?;
    if request.idea.trim().is_empty() {
        return Err(RequestError::usage("the idea is empty; accepted: what is to be done, in words"));
    }
    let file = &request.file;
    let path = context.dir.join(file);
    let is_markdown = path.extension().is_some_and(|it| it == "md" || it == "markdown");
    if !is_markdown {
        let error = format!("--plan {file} is no Markdown file; accepted: a new file that ends with .md");
        return Err(RequestError::usage(error));
    }
    if path.symlink_metadata().is_ok() {
        let error = format!("{file} is there already; accepted: a new file, by --plan FILE");
        return Err(RequestError::usage(error).hint(format!("refrain plan check --plan {file} looks at it")));
    }
    // Before the agent costs anything.
    check_folder(&path).map_err(|error| {
        let accepted = "accepted: a new file in a folder that you can write";
        RequestError::usage(format!("--plan {file}: {}; {accepted}", printable(&chain(&error))))
    })?;
    let service = context.service()?;
    let mut work = request.work();
    let settings = resolve::settings_or_claude(context, &service, &mut work)?;
    resolve::note_untrusted(&settings, note);
    let resolved = resolve::common(context, &work, GateChoice::default(), &settings, &service, &context.dir)?;
    let spec = resolved.spec;
    resolve::check_caps(&settings, &spec.agent)?;
    note(format!("{} writes the plan", spec.agent.program));
    let (prepared, text) = write(context, request, (&service, &spec), None, note)?;
    let problems = errors(&prepared);
    if problems.is_empty() {
        return Ok(prepared);
    }
    note(format!("the plan cannot be used, and is written once more: {}", problems.join("; ")));
    Ok(write(context, request, (&service, &spec), Some((&text, &problems)), note)?.0)
}

impl NewPlan {
    fn work(&self) -> WorkArgs {
        let Self { agent, command, model, .. } = self;
        WorkArgs {
            agent: agent.clone(),
            command: command.clone(),
            model: model.clone(),
            ..WorkArgs::default()
        }
    }
}

/// Asks the agent, writes its plan, and reads it as a run would.
fn write(
    context: &Context,
    request: &NewPlan,
    (service, spec): (&refrain_engine::Service, &refrain_core::Spec),
    before: Option<(&str, &[String])>,
    note: Note<'_>,
) -> Result<(PreparedPlan, String), RequestError> {
    let text = service.draft_plan(spec, &request.idea, before)?.map_err(|said| {
        let said = squeeze(&printable(&said));
        let error =
            format!("{} wrote no line PLAN: with a plan after it; it said: {said}", spec.agent.program);
        RequestError::new(Code::Failed, error).hint("nothing was written; try again, or another --agent")
    })?;
    put(&context.dir.join(&request.file), &text, before.is_some())?;
    let source = SourceArgs { plan: Some(request.file.clone()), ..SourceArgs::default() };
    let (spec, how) = (SpecArgs::default(), HowArgs::default());
    let plan = RunPlan { source, spec, how, name: None, work: request.work(), mirror: Vec::new() };
    Ok((PreparedPlan::of(context, plan, note)?, text))
}

/// Writes the file: a new one, or in place of the plan that could not be used.
fn put(path: &Utf8Path, text: &str, again: bool) -> Result<(), RequestError> {
    if again {
        return Ok(write_atomic(path, text.as_bytes()).map_err(EngineError::from)?);
    }
    match create(path, text.as_bytes()).map_err(EngineError::from)? {
        true => Ok(()),
        false => {
            Err(RequestError::new(Code::Refused, format!("{path} was made meanwhile and stays as it is")))
        }
    }
}

fn errors(prepared: &PreparedPlan) -> Vec<String> {
    let problems = prepared.source.problems.iter().filter(|problem| problem.is_error());
    problems.map(ToString::to_string).collect()
}
