//! The form that starts a loop, with a preview of what will run.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Form, State};
use axum::response::{IntoResponse, Redirect, Response};
use refrain_app::remote::Start;
use refrain_core::gate::GateName;
use refrain_core::spec::Limits;
use refrain_engine::StartOffer;

use super::forms::number;
use super::frame::{Frame, PageQuery, page};
use crate::http::app_state::AppState;
use crate::http::failure::Failure;
use crate::requests::{COMMAND, Forecasts, Refusal, RequestHandler};

#[derive(Template)]
#[template(path = "start.html")]
struct Page {
    frame: Frame,
    error: String,
    /// The field of the error; empty if it is about none.
    at: &'static str,
    preview: Option<Preview>,
    projects: Vec<Project>,
    agents: Vec<Choice>,
    gates: Vec<Choice>,
    places: Vec<Choice>,
    typed: StartForm,
}

/// A project that can be chosen.
struct Project {
    name: String,
    folder: String,
    href: String,
    is_chosen: bool,
}

/// Something to choose.
struct Choice {
    value: String,
    label: String,
    says: String,
    is_chosen: bool,
}

/// What will run.
struct Preview {
    sentences: Vec<String>,
    command: String,
}

/// The form's fields as they were typed, to show them again.
#[derive(Clone, Default)]
struct StartForm {
    goal: String,
    workspace: String,
    agent: String,
    command: String,
    model: String,
    name: String,
    /// Gates that were found, and chosen.
    chosen: Vec<String>,
    gates: String,
    place: String,
    max_iterations: String,
    max_cost_usd: String,
    max_minutes: String,
    require_approval: bool,
    sandbox: bool,
    allow_missing_gates: bool,
    is_preview: bool,
    /// Whether it comes from the form.
    is_sent: bool,
}

/// The fields that an error may be about; each has a place on the page.
const FIELDS: [&str; 11] = [
    "goal",
    "workspace",
    "agent",
    "command",
    "model",
    "name",
    "gates",
    "place",
    "max_iterations",
    "max_cost_usd",
    "max_tick_duration_minutes",
];

impl StartForm {
    fn of(fields: Vec<(String, String)>) -> Self {
        let mut typed = Self { is_sent: true, ..Self::default() };
        for (name, value) in fields {
            match name.as_str() {
                "goal" => typed.goal = value.replace("\r\n", "\n"),
                "workspace" => typed.workspace = value,
                "agent" => typed.agent = value,
                "command" => typed.command = value,
                "model" => typed.model = value,
                "name" => typed.name = value,
                "gate" => typed.chosen.push(value),
                "gates" => typed.gates = value,
                "place" => typed.place = value,
                "max_iterations" => typed.max_iterations = value,
                "max_cost_usd" => typed.max_cost_usd = value,
                "max_minutes" => typed.max_minutes = value,
                "require_approval" => typed.require_approval = true,
                "sandbox" => typed.sandbox = true,
                "allow_missing_gates" => typed.allow_missing_gates = true,
                "do" => typed.is_preview = value == "preview",
                _ => {}
            }
        }
        typed
    }

    fn start(&self) -> Result<Start, Refusal> {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let more = self.gates.lines().filter_map(given);
        let command = given(&self.command);
        Ok(Start {
            goal: self.goal.clone(),
            workspace: given(&self.workspace),
            agent: given(&self.agent).filter(|_| command.is_none()),
            command,
            model: given(&self.model),
            name: given(&self.name),
            gates: self.chosen.iter().cloned().chain(more).collect(),
            // The form shows the gates that are found.
            no_gates: self.chosen.is_empty() && self.gates.trim().is_empty(),
            allow_missing_gates: self.allow_missing_gates,
            max_iterations: number(("max_iterations", "Iterations"), Some(self.max_iterations.clone()))?,
            max_cost_usd: number(("max_cost_usd", "Dollars"), Some(self.max_cost_usd.clone()))?,
            max_tick_duration_minutes: number(
                ("max_tick_duration_minutes", "Minutes of one iteration"),
                Some(self.max_minutes.clone()),
            )?,
            require_approval: self.require_approval,
            sandbox: self.sandbox,
            place: given(&self.place),
            ..Start::default()
        })
    }
}

enum Outcome {
    Started { project: String, id: String },
    Preview(Preview),
}

pub(super) async fn show(State(state): State<Arc<AppState>>, asked: PageQuery) -> Response {
    let of = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let typed = StartForm { workspace: of("workspace"), goal: of("goal"), ..StartForm::default() };
    form(&state, None, None, typed).await
}

pub(super) async fn start(
    State(state): State<Arc<AppState>>,
    Form(fields): Form<Vec<(String, String)>>,
) -> Response {
    let typed = StartForm::of(fields);
    let asked = typed.clone();
    match state.run_blocking(move |handler| act(handler, &asked)).await {
        Ok(Outcome::Started { project, id }) => Redirect::to(&format!("/p/{project}/{id}")).into_response(),
        Ok(Outcome::Preview(preview)) => form(&state, None, Some(preview), typed).await,
        Err(failure) => (failure.status(), form(&state, Some(failure), None, typed).await).into_response(),
    }
}

async fn form(
    state: &Arc<AppState>,
    failure: Option<Failure>,
    preview: Option<Preview>,
    typed: StartForm,
) -> Response {
    let workspace = Some(typed.workspace.trim().to_owned()).filter(|text| !text.is_empty());
    let look = move |handler: &RequestHandler| {
        // A folder that is refused has its error already.
        let offer = handler.offer(workspace.as_deref()).or_else(|_| handler.offer(None)).unwrap_or_default();
        Ok((handler.projects(), offer))
    };
    let (projects, (offer, forecasts)) = state.run_blocking(look).await.unwrap_or_default();
    let projects = projects.into_iter().map(|project| Project {
        name: project.folder.rsplit('/').next().unwrap_or_default().to_owned(),
        href: format!("/start?workspace={}", escaped(&project.folder)),
        is_chosen: offer.folder.as_str() == project.folder,
        folder: project.folder,
    });
    let at = failure.as_ref().and_then(|it| it.parameter).filter(|at| FIELDS.contains(at)).unwrap_or("");
    page(&Page {
        frame: Frame::of_all(state),
        error: failure.map(|failure| failure.on_form).unwrap_or_default(),
        at,
        preview,
        projects: projects.collect(),
        agents: agents(&offer, &forecasts, &typed),
        gates: gates(&offer, &typed),
        places: places(&offer, &typed),
        typed: StartForm {
            workspace: match typed.workspace.is_empty() {
                true => offer.folder.to_string(),
                false => typed.workspace.clone(),
            },
            ..typed
        },
    })
}

/// The agents that are found, and the one that was named.
fn agents(offer: &StartOffer, forecasts: &Forecasts, typed: &StartForm) -> Vec<Choice> {
    let is_other = !typed.agent.is_empty() && !offer.agents.contains(&typed.agent);
    let other = is_other.then(|| typed.agent.clone());
    let first = offer.agents.first().filter(|_| !typed.is_sent);
    let choice = |value: String| Choice {
        is_chosen: typed.agent == value || first == Some(&value),
        label: value.clone(),
        says: match forecasts.iter().find(|(agent, _)| *agent == value) {
            Some((_, forecast)) => format!("so far {forecast}"),
            None if is_other && value == typed.agent => "not found in PATH".to_owned(),
            None => "found in PATH".to_owned(),
        },
        value,
    };
    offer.agents.iter().cloned().chain(other).map(choice).collect()
}

/// The gates that are found: the required ones are chosen until the form says otherwise.
fn gates(offer: &StartOffer, typed: &StartForm) -> Vec<Choice> {
    let choice = |(value, is_hard): &(String, bool)| {
        let (name, command) = value.split_once('=').unwrap_or(("", value));
        Choice {
            is_chosen: if typed.is_sent { typed.chosen.contains(value) } else { *is_hard },
            label: format!("{name}: {command}"),
            says: String::new(),
            value: value.clone(),
        }
    };
    offer.gates.iter().map(choice).collect()
}

fn places(offer: &StartOffer, typed: &StartForm) -> Vec<Choice> {
    let default = if offer.is_repository { "worktree" } else { "folder" };
    let chosen = if typed.place.is_empty() { default } else { typed.place.as_str() };
    let choice = |(value, label, says): (&str, &str, &str)| Choice {
        is_chosen: value == chosen,
        value: value.to_owned(),
        label: label.to_owned(),
        says: says.to_owned(),
    };
    let git = [
        (
            "worktree",
            "Its own worktree",
            "A copy of the project on a new branch. Your files stay as they are.",
        ),
        ("branch", "A new branch here", "In the folder, on a new branch. Its work is committed."),
    ];
    let here = (
        "folder",
        "Here, as it is",
        "In the folder, on the branch that is checked out. Nothing is committed.",
    );
    git.into_iter().filter(|_| offer.is_repository).chain([here]).map(choice).collect()
}

fn act(handler: &RequestHandler, typed: &StartForm) -> Result<Outcome, Refusal> {
    let start = typed.start()?;
    if typed.is_preview {
        let words = handler.preview(&start)?;
        // The form's own goal is read from standard input.
        let typed = words.iter().map(|word| if word == "-" { &start.goal } else { word });
        let command = typed.map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let (_, forecasts) = handler.offer(start.workspace.as_deref())?;
        let agent = start.agent.as_deref().unwrap_or(COMMAND);
        let forecast = forecasts.iter().find(|(of, _)| of == agent);
        let forecast = forecast.map(|(_, it)| format!("Similar loops took: {it}."));
        let sentences = sentences(&start, &words).into_iter().chain(forecast).collect();
        return Ok(Outcome::Preview(Preview { sentences, command }));
    }
    let view = handler.start(&start)?.view;
    Ok(Outcome::Started { project: view.project, id: view.id.to_string() })
}

/// What the loop will do, in words: `command` has the limits that the form does not say, too.
fn sentences(start: &Start, command: &[String]) -> Vec<String> {
    let agent = start.command.as_deref().or(start.agent.as_deref()).unwrap_or("The configured agent");
    let place = match start.place.as_deref() {
        Some("worktree") => "in its own worktree, on a new branch",
        Some("branch") => "on a new branch in the folder",
        _ => "in the folder as it is, without commits",
    };
    let iterations = start.max_iterations.map_or_else(
        || format!("{} iterations, or as many as the configuration says", Limits::DEFAULT_ITERATIONS),
        |most| format!("{most} iterations"),
    );
    let limit = |option: &str| command.iter().find_map(|word| word.strip_prefix(option));
    let time = limit("--timeout=").map(|time| format!(", each of at most {time}")).unwrap_or_default();
    let money = limit("--max-cost=").map(|cost| format!(", and at ${cost}")).unwrap_or_default();
    let done = match start.gates.as_slice() {
        [] => "No gate checks the work: it ends unverified, on the agent's word.".to_owned(),
        [only] => format!("It is done when {} passes on the work.", gate_name(only)),
        several => {
            let names: Vec<_> = several.iter().map(|gate| gate_name(gate)).collect();
            format!("It is done when all of these pass on the work: {}.", names.join(", "))
        }
    };
    let mut all =
        vec![format!("{agent} works {place}."), format!("It stops after {iterations}{time}{money}."), done];
    all.extend(start.sandbox.then(|| "The agent and the gates run in a sandbox.".to_owned()));
    all.extend(start.require_approval.then(|| "Then it waits for your approval.".to_owned()));
    all
}

/// The name of a gate, if it has one, else its command.
fn gate_name(gate: &str) -> &str {
    let named = gate.split_once('=').map(|(name, _)| name);
    named.filter(|name| name.parse::<GateName>().is_ok()).unwrap_or(gate)
}

/// A path in a query.
pub(super) fn escaped(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./~".contains(&byte);
    path.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// A word as a shell would take it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("--name=job", "--name=job")]
    #[case("", "''")]
    #[case("a b", "'a b'")]
    #[case("it's", r"'it'\''s'")]
    fn a_word_is_shown_as_a_shell_would_take_it(#[case] word: &str, #[case] shown: &str) {
        assert_eq!(quoted(word), shown);
    }

    #[test]
    fn the_preview_of_a_form_is_in_words() {
        let fields =
            [("goal", "Fix it."), ("agent", "claude"), ("gate", "tests=cargo test"), ("place", "worktree")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let start = StartForm::of(fields.to_vec()).start().unwrap();
        assert_eq!(
            sentences(&start, &["--max-cost=5".to_owned(), "--timeout=30m".to_owned()]),
            [
                "claude works in its own worktree, on a new branch.",
                "It stops after 20 iterations, or as many as the configuration says, each of at most 30m, and at $5.",
                "It is done when tests passes on the work."
            ]
        );
        assert_eq!(gate_name("FOO=1 make test"), "FOO=1 make test");
        assert_eq!(escaped("/a b/ü"), "/a%20b/%C3%BC");
    }
}
