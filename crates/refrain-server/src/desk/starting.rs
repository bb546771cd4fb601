//! Starting: what a caller asked for becomes the words that a person would type, and Refrain is told them.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopId;
use refrain_core::spec::AgentKind;
use refrain_core::values::Limit;
use refrain_engine::config::{Chosen, Command, Settings};
use refrain_engine::{Answer, Service, chain, say};
use serde::Deserialize;

use super::{Desk, PlanRun, Refusal, RefusalKind, Start, Started, Which};

/// What one iteration may take unless something is said or configured, in minutes (seed 003).
const MINUTES: u32 = 30;
/// How long an agent that its time limit stops has to come to an end by itself (issue 8).
const GRACE: &str = "30s";
/// What a loop may cost unless something is said or configured, in US dollars (seed 003).
const COST: f64 = 5.0;

/// Who works, as both tools say it.
struct Worker<'a> {
    agent: Option<&'a str>,
    command: Option<&'a str>,
    model: Option<&'a str>,
}

/// What it may cost, and how long an iteration may take, as both tools say it.
struct Bounds {
    cost: Option<f64>,
    minutes: Option<u32>,
}

impl Desk {
    /// Starts a loop with a runner of its own.
    pub(crate) fn start(&self, asked: &Start) -> Result<Started, Refusal> {
        let (folder, words, mut notes) = self.start_words(asked)?;
        let (id, told) = self.tell(&folder, words, &asked.goal)?;
        notes.extend(told);
        self.started(&id, &folder, notes)
    }

    /// What is said to start it: where, the words, and what whoever asked should know.
    fn start_words(&self, asked: &Start) -> Result<(Utf8PathBuf, Vec<String>, Vec<String>), Refusal> {
        asked.check()?;
        let folder = self.folder(asked.workspace.as_deref())?;
        let service = self.service(&folder)?;
        let worker = Worker::new(&asked.agent, &asked.command, &asked.model);
        let settings = worker.settings(&service)?;
        let kind = worker.kind(&settings)?.ok_or_else(|| {
            let accepted = "accepted are agent (claude, codex, opencode, gemini) or command";
            Refusal::new(format!("nothing says who works: {accepted}, or start.agent of the configuration"))
        })?;
        let bounds = Bounds { cost: asked.max_cost_usd, minutes: asked.max_tick_duration_minutes };
        let mut words = vec!["start".to_owned()];
        let notes = bounds.say(&mut words, &settings, kind, &worker)?;
        worker.say(&mut words);
        option(&mut words, "name", asked.name.as_ref());
        option(&mut words, "max-iterations", asked.max_iterations);
        option(&mut words, "success-command", asked.success_command.as_ref());
        let every = asked.checkpoint_interval.map(|every| match every {
            0 => "none".to_owned(),
            every => every.to_string(),
        });
        option(&mut words, "critique-every", every);
        asked.gates.iter().for_each(|gate| option(&mut words, "gate", Some(gate)));
        words.extend(asked.allow_missing_gates.then(|| "--allow-missing-gates".to_owned()));
        words.extend(asked.require_approval.then(|| "--require-approval".to_owned()));
        // The goal goes by stdin: it is no one else's to see, and no option.
        words.push("-".to_owned());
        Ok((folder, words, notes))
    }

    /// Works on the tasks of a plan, with a runner of its own.
    pub(crate) fn run_plan(&self, asked: &PlanRun) -> Result<Started, Refusal> {
        asked.check()?;
        let folder = self.folder(asked.workspace.as_deref())?;
        let service = self.service(&folder)?;
        let worker = Worker::new(&asked.agent, &asked.command, &asked.model);
        let settings = worker.settings(&service)?;
        let kind = worker.kind(&settings)?.unwrap_or(AgentKind::Claude);
        let bounds = Bounds { cost: asked.max_cost_usd, minutes: asked.max_tick_duration_minutes };
        let mut words = vec!["plan".to_owned(), "run".to_owned()];
        let mut notes = bounds.say(&mut words, &settings, kind, &worker)?;
        worker.say(&mut words);
        let plan = asked.plan.as_ref().map(|plan| self.file("plan", plan, &folder)).transpose()?;
        option(&mut words, "tag", asked.tag.as_ref());
        option(&mut words, "plan", plan);
        option(&mut words, "name", asked.name.as_ref());
        option(&mut words, "verify", asked.verify.as_ref());
        words.extend(asked.allow_missing_gates.then(|| "--allow-missing-gates".to_owned()));
        option(&mut words, "jobs", asked.jobs);
        option(&mut words, "max-iterations-per-task", asked.max_iterations_per_task);
        let (id, told) = self.tell(&folder, words, "")?;
        notes.extend(told);
        self.started(&id, &folder, notes)
    }

    /// Has Refrain let a loop, or a plan, go on, with a runner of its own.
    pub(super) fn go_on(&self, folder: &Utf8Path, words: &[String]) -> Result<(), Refusal> {
        let words: Vec<_> = words.iter().cloned().chain(["--detach", "--json"].map(str::to_owned)).collect();
        let answer = say(&self.host, folder, &words, "").map_err(|error| Refusal::new(chain(&error)))?;
        match serde_json::from_str::<Begun>(&answer.stdout) {
            Ok(_) => Ok(()),
            Err(_) if answer.code == Some(0) => Ok(()),
            Err(_) => Err(refusal(&answer, &lines(&answer))),
        }
    }

    /// Has Refrain do it, detached; the id of what was started, and what it had to say.
    fn tell(
        &self,
        folder: &Utf8Path,
        words: Vec<String>,
        input: &str,
    ) -> Result<(LoopId, Vec<String>), Refusal> {
        let words: Vec<_> = words.into_iter().chain(["--detach", "--json"].map(str::to_owned)).collect();
        let answer = say(&self.host, folder, &words, input).map_err(|error| Refusal::new(chain(&error)))?;
        let told = lines(&answer);
        // One that ends at once has begun all the same, and says how it ended by its code.
        if let Ok(Begun { id }) = serde_json::from_str(&answer.stdout) {
            let notes = told.iter().filter_map(|line| line.strip_prefix("note: ")).map(str::to_owned);
            return Ok((id, notes.collect()));
        }
        Err(refusal(&answer, &told))
    }

    /// The command line that a start comes to, as a person would type it; the goal is read from standard input.
    pub(crate) fn preview(&self, asked: &Start) -> Result<Vec<String>, Refusal> {
        let (folder, words, _) = self.start_words(asked)?;
        Ok(["refrain", "-C", folder.as_str()].map(str::to_owned).into_iter().chain(words).collect())
    }

    fn started(&self, id: &LoopId, folder: &Utf8Path, notes: Vec<String>) -> Result<Started, Refusal> {
        let which = Which { loop_id: id.to_string(), workspace: Some(folder.to_string()) };
        Ok(Started { started: true, view: self.status(&which)?.view, notes })
    }
}

/// Of the status object, who it is about.
#[derive(Deserialize)]
struct Begun {
    id: LoopId,
}

/// What was said in place of a loop: the error, and what to do about it.
fn refusal(answer: &Answer, told: &[&str]) -> Refusal {
    let error = told.iter().skip_while(|line| !line.starts_with("refrain: "));
    let error: Vec<_> = error.map(|line| line.strip_prefix("refrain: ").unwrap_or(line)).collect();
    let kind = match answer.code {
        Some(2) => RefusalKind::Asked,
        Some(3) => RefusalKind::NotFound,
        _ => RefusalKind::Conflict,
    };
    match (error.as_slice(), answer.code) {
        ([], Some(code)) => Refusal::of(kind, format!("refrain ended with code {code} and said nothing")),
        ([], None) => Refusal::of(RefusalKind::Failed, "refrain was ended by a signal"),
        (lines, _) => Refusal::of(kind, in_own_words(&lines.join("; "))),
    }
}

/// What a refusal says of options, said of parameters: whoever called has no command line.
fn in_own_words(text: &str) -> String {
    /// Longer ones first, as one may begin like another.
    const WORDS: [(&str, &str); 19] = [
        ("--allow-missing-gates", "allow_missing_gates"),
        ("--require-approval", "require_approval"),
        ("--max-iterations-per-task", "max_iterations_per_task"),
        ("--max-iterations", "max_iterations"),
        ("--max-cost", "max_cost_usd"),
        ("--timeout-grace", "max_tick_duration_minutes"),
        ("--timeout", "max_tick_duration_minutes"),
        ("--critique-every", "checkpoint_interval"),
        ("--success-command", "success_command"),
        ("--working-dir", "workspace"),
        ("--command", "command"),
        ("--verify", "verify"),
        ("--agent", "agent"),
        ("--model", "model"),
        ("--gate", "gates"),
        ("--name", "name"),
        ("--jobs", "jobs"),
        ("--plan", "plan"),
        ("--tag", "tag"),
    ];
    let mut said = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("--") {
        let (before, option) = rest.split_at(at);
        said.push_str(before);
        let goes_on = |known: &str| {
            let behind = option[known.len()..].chars().next();
            behind.is_some_and(|next| next.is_ascii_alphanumeric() || next == '-')
        };
        let known = WORDS.iter().find(|(known, _)| option.starts_with(known) && !goes_on(known));
        let (skipped, own) = known.map_or((2, "--"), |(known, own)| (known.len(), own));
        said.push_str(own);
        rest = &option[skipped..];
    }
    said + rest
}

/// What was told, less empty lines.
fn lines(answer: &Answer) -> Vec<&str> {
    answer.stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

impl<'a> Worker<'a> {
    fn new(agent: &'a Option<String>, command: &'a Option<String>, model: &'a Option<String>) -> Self {
        Self { agent: agent.as_deref(), command: command.as_deref(), model: model.as_deref() }
    }

    fn settings(&self, service: &Service) -> Result<Settings, Refusal> {
        let chosen = Chosen { agent: self.agent, command: self.command.is_some() };
        // Inside an attempt variables were set for the agent; nothing can be started there, and its own words say why.
        service.settings(chosen, true).map_err(|error| Refusal::new(in_own_words(&error.to_string())))
    }

    /// Which adapter will run; none where nothing says who works.
    fn kind(&self, settings: &Settings) -> Result<Option<AgentKind>, Refusal> {
        let start = &settings.config.start;
        let said = self.command.map(str::parse::<Command>).transpose();
        let said = said.map_err(|error| Refusal::new(format!("command: {error}")))?;
        let program = said.as_ref().or(start.command.as_ref()).map(|command| command.program.as_str());
        let named = start.agent.as_deref().and_then(AgentKind::named);
        Ok(named.or_else(|| program.map(AgentKind::of_program)).or(self.agent.map(|_| AgentKind::Generic)))
    }

    fn say(&self, words: &mut Vec<String>) {
        option(words, "agent", self.agent);
        option(words, "command", self.command);
        option(words, "model", self.model);
    }
}

impl Bounds {
    /// Says what the caller and the configuration leave open as seed 003 does; answers with what of that cannot be kept.
    fn say(
        &self,
        words: &mut Vec<String>,
        settings: &Settings,
        kind: AgentKind,
        worker: &Worker<'_>,
    ) -> Result<Vec<String>, Refusal> {
        let start = &settings.config.start;
        let minutes = self.minutes.or_else(|| start.timeout.is_none().then_some(MINUTES));
        option(words, "timeout", minutes.map(|minutes| format!("{minutes}m")));
        let is_open = start.timeout_grace.is_none();
        if is_open && (!matches!(start.timeout, Some(Limit::None)) || self.minutes.is_some()) {
            option(words, "timeout-grace", Some(GRACE));
        }
        let model = worker.model.or(start.model.as_deref());
        let is_priced = kind.streams() && model.and_then(|model| settings.price(model)).is_some();
        let tells = kind.tells_cost() || is_priced;
        let why = format!("{kind} does not say what it costs");
        match self.cost {
            Some(cost) if !tells => {
                let accepted = "accepted are agents that do (claude, opencode, acp; codex and gemini with a model that \
                                the configuration has a price for), or leaving it out";
                return Err(Refusal::new(format!("max_cost_usd {cost}: {why}; {accepted}")));
            }
            Some(cost) => option(words, "max-cost", Some(cost)),
            None if start.max_cost.is_some() => {}
            None if tells => option(words, "max-cost", Some(COST)),
            None => {
                let bound = "its iterations and their time are all that bounds it";
                return Ok(vec![format!("max_cost_usd: {why}, so no cap is kept; {bound}")]);
            }
        }
        Ok(Vec::new())
    }
}

/// One word, so that no value can pass for another option.
pub(super) fn option(words: &mut Vec<String>, name: &str, value: Option<impl std::fmt::Display>) {
    words.extend(value.map(|value| format!("--{name}={value}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_parameters_and_no_options() {
        for (said, expected) in [
            (
                "--max-cost 5: claude …; leave --max-cost out",
                "max_cost_usd 5: claude …; leave max_cost_usd out",
            ),
            ("--max-iterations 900: accepted are 1 to 200", "max_iterations 900: accepted are 1 to 200"),
            (
                "--gate-timeout stays, -- too, and --gate=x goes",
                "--gate-timeout stays, -- too, and gates=x goes",
            ),
            ("--max-iterations-per-task", "max_iterations_per_task"),
        ] {
            assert_eq!(in_own_words(said), expected);
        }
    }
}
