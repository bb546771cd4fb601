//! `refrain doctor --fleet`: what could keep loops from being driven. Each finding says what mends it.

use refrain_app::{Context, RequestError};
use refrain_core::view::checkup::{Finding, Subject};
use refrain_core::view::garbage::size;
use refrain_engine::{chain, now};
use temporalio_client::grpc::WorkflowService;
use temporalio_client::tonic::{Code, IntoRequest};
use temporalio_client::{Client, NamespacedClient};
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    DescribeNamespaceRequest, GetSystemInfoRequest,
};

use super::fairness;
use super::rights::{Bench, Lacking, rates};
use super::roster::{RosterRow, roster};
use crate::say;
use crate::settings::{Settings, failed};
use crate::shared::{labels, logs};

/// How far the clock of a worker may be from this one, in seconds.
const CLOCKS: i64 = 10;
/// Free bytes below which a worker is in trouble soon, and below which it takes hardly a loop.
const DISK: (u64, u64) = (1 << 30, 64 << 20);

/// Prints the findings, as a list in JSON.
pub(crate) async fn run(context: &Context) -> Result<(), RequestError> {
    let settings = Settings::read(context)?;
    settings.terms()?;
    let mut found = vec![state(context, &settings)];
    found.extend(of_logs(&settings).await);
    match settings.connect("refrain").await {
        Ok(client) => found.extend(of_server(&settings, &client).await?),
        Err(error) => {
            let advice = error.hints().last().unwrap_or_default();
            found.push(Finding::problem(Subject::Server, error.line(), advice));
        }
    }
    say::print(&serde_json::to_string(&found).map_err(failed)?);
    Ok(())
}

fn state(context: &Context, settings: &Settings) -> Finding {
    let remote = match settings.state() {
        Ok(remote) => remote,
        Err(error) => return Finding::problem(Subject::State, error.line(), "refrain fleet init URL"),
    };
    let tried = match Bench::new(&context.host.data_home) {
        Ok(bench) => bench.try_remote(&remote),
        Err(found) => Err(Lacking { found, advice: "make room on this disk".to_owned() }),
    };
    let finding = match (tried, rates(&remote)) {
        (Err(Lacking { found, advice }), _) => Finding::problem(Subject::State, found, advice),
        (Ok(took), None) => Finding::ok(
            Subject::State,
            format!("loops can be kept there, a push takes {} ms", took.as_millis()),
        ),
        (Ok(_), Some(limit)) => Finding::warning(
            Subject::State,
            format!("loops can be kept there; {limit}"),
            "for more than some ten loops at a time: refrain fleet init ssh://HOST/PATH.git, a bare repository on a host of your own",
        ),
    };
    finding.about(remote)
}

/// Whether long logs can be kept where the configuration says.
async fn of_logs(settings: &Settings) -> Option<Finding> {
    let advice = "[fleet] blobs: a folder that is there, or a bucket and the variables of AWS that open it";
    let store = match logs::store(settings) {
        Ok(store) => store?,
        Err(error) => return Some(Finding::problem(Subject::State, error.line(), advice)),
    };
    let address = store.address().to_owned();
    let tried = tokio::task::spawn_blocking(move || logs::check(store.as_ref())).await;
    Some(match tried {
        Ok(Ok(())) => Finding::ok(Subject::State, "long logs can be kept there").about(address),
        Ok(Err(why)) => {
            Finding::problem(Subject::State, format!("long logs cannot be kept there: {why}"), advice)
                .about(address)
        }
        Err(error) => Finding::problem(Subject::State, chain(&error), advice).about(address),
    })
}

/// What the server is; what it lacks if it cannot serve.
pub(crate) async fn server(client: &Client) -> Result<String, Lacking> {
    let mut service = client.clone();
    let info = WorkflowService::get_system_info(&mut service, GetSystemInfoRequest {}.into_request()).await;
    let version = info.map(|info| info.into_inner().server_version).unwrap_or_default();
    let namespace = client.namespace();
    let asked = DescribeNamespaceRequest { namespace: namespace.clone(), ..Default::default() };
    match WorkflowService::describe_namespace(&mut service, asked.into_request()).await {
        Ok(_) => Ok(format!("Temporal {version}, namespace {namespace}")),
        Err(status) if status.code() == Code::NotFound => Err(Lacking {
            found: format!("the server has no namespace {namespace}"),
            advice: format!(
                "temporal operator namespace create --namespace {namespace} makes it; refrain config set fleet.namespace NAME names another"
            ),
        }),
        Err(status) => Err(Lacking {
            found: format!("the server does not answer for namespace {namespace}: {}", status.message()),
            advice: "TEMPORAL_API_KEY, or [fleet] tls, says who you are".to_owned(),
        }),
    }
}

async fn of_server(settings: &Settings, client: &Client) -> Result<Vec<Finding>, RequestError> {
    let address = settings.address()?;
    let said = match server(client).await {
        Ok(said) => said,
        Err(Lacking { found, advice }) => {
            return Ok(vec![Finding::problem(Subject::Server, found, advice).about(address)]);
        }
    };
    let is_open = !settings.is_encrypted()? && !is_loopback(&address);
    let finding = match is_open {
        true => Finding::warning(
            Subject::Server,
            format!("{said}; what goes there is not encrypted"),
            "refrain config set fleet.tls.ca FILE, if the server has a certificate; else reach it through a tunnel",
        ),
        false => Finding::ok(Subject::Server, said),
    };
    let mut found = vec![finding.about(address.clone())];
    if let Some(team) = settings.team() {
        found.push(of_team(client, team).await.about(address));
    }
    found.push(of_labels(client).await);
    let rows = match roster(client).await {
        Ok(rows) => rows,
        Err(error) => {
            found.push(Finding::problem(Subject::Worker, error.line(), "see the log of the server"));
            return Ok(found);
        }
    };
    if rows.is_empty() {
        let advice = "refrain worker, on a machine with agents";
        found.push(Finding::problem(Subject::Worker, "there is none: loops wait", advice));
    }
    let here = now().as_millisecond();
    found.extend(rows.iter().flat_map(|row| of_worker(row, here)));
    Ok(found)
}

/// Whether loops can be filtered.
async fn of_labels(client: &Client) -> Finding {
    match labels::missing(client).await {
        Ok(missing) if missing.is_empty() => Finding::ok(
            Subject::Server,
            "loops can be filtered by project, state, pool, team, plan and agent",
        ),
        Ok(missing) => Finding::warning(
            Subject::Server,
            format!("loops cannot be filtered: the namespace lacks {}", missing.join(", ")),
            "refrain fleet init, as one who may change the namespace; loops that are given to the fleet from then on have them",
        ),
        Err(status) => Finding::warning(
            Subject::Server,
            format!("whether loops can be filtered is unknown: {}", status.message()),
            "temporal operator search-attribute list shows what the namespace has",
        ),
    }
}

/// Whether the loops of this team get their share of the workers.
async fn of_team(client: &Client, team: &str) -> Finding {
    match fairness::is_fair(client).await {
        Ok(true) => Finding::ok(Subject::Server, format!("team {team} gets its share of the workers")),
        Ok(false) => Finding::problem(
            Subject::Server,
            format!("the server ignores teams: loops of team {team} wait for all earlier ones"),
            "the dynamic configuration of the server needs matching.useNewMatcher=true and matching.enableFairness=true",
        ),
        Err(why) => Finding::problem(
            Subject::Server,
            format!("cannot check whether team {team} gets its share: {why}"),
            "see the log of the server",
        ),
    }
}

fn is_loopback(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    ["127.0.0.1:", "localhost:", "[::1]:"].iter().any(|begin| rest.starts_with(begin))
}

fn of_worker(row: &RosterRow, here_ms: i64) -> Vec<Finding> {
    let note = &row.note;
    let finding = if !row.answers {
        let found = format!("it does not answer, and asked for work {} s ago", row.seen);
        Finding::warning(
            Subject::Worker,
            found,
            "on its machine: refrain worker; its name is forgotten after 5 minutes",
        )
    } else if note.draining {
        let advice = "on its machine, once it has ended: refrain worker";
        Finding::warning(Subject::Worker, "it drains: it takes no more loops", advice)
    } else if note.version != env!("CARGO_PKG_VERSION") {
        let found = format!("it is refrain {}, and this one {}", note.version, env!("CARGO_PKG_VERSION"));
        Finding::warning(Subject::Worker, found, "use the same version on all machines")
    } else {
        let found =
            format!("drives {} of {}, agents {}", note.loops.len(), note.slots, note.agents.join(", "));
        Finding::ok(Subject::Worker, found)
    };
    let mut found = vec![finding];
    if !row.answers {
        return found.into_iter().map(|finding| finding.about(note.name.clone())).collect();
    }
    if !note.missing.is_empty() {
        let missing = note.missing.join(", ");
        let advice = "install it there, or take it out of [worker] agents";
        found.push(Finding::problem(Subject::Agent, format!("not in PATH: {missing}"), advice));
    }
    let ahead = (note.clock_ms - here_ms) / 1000;
    if ahead.abs() > CLOCKS {
        let told = format!("its clock is {} s {}", ahead.abs(), if ahead > 0 { "ahead" } else { "behind" });
        let advice =
            "on its machine: timedatectl set-ntp true; leases do not depend on it, times in journals do";
        found.push(Finding::warning(Subject::Clock, told, advice));
    }
    let free = format!("{} are free", size(note.disk));
    match note.disk {
        bytes if bytes < DISK.1 => {
            found.push(Finding::problem(Subject::Disk, free, "on its machine: refrain gc, or other room"));
        }
        bytes if bytes < DISK.0 => {
            found.push(Finding::warning(Subject::Disk, free, "on its machine: refrain gc, or other room"));
        }
        _ => {}
    }
    found.into_iter().map(|finding| finding.about(note.name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use refrain_core::view::checkup::Grade;

    use super::*;
    use crate::operations::roster::WorkerNote;

    fn worker(change: impl FnOnce(&mut RosterRow)) -> Vec<(Subject, Grade)> {
        let note = WorkerNote {
            name: "w1".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            disk: 10 << 30,
            clock_ms: 1_000_000,
            ..WorkerNote::default()
        };
        let mut row = RosterRow { seen: 1, answers: true, note };
        change(&mut row);
        let found = of_worker(&row, 1_000_000);
        assert!(found.iter().all(|finding| finding.about.as_deref() == Some("w1")));
        assert!(found.iter().all(|finding| finding.grade == Grade::Ok || finding.advice.is_some()));
        found.iter().map(|finding| (finding.subject, finding.grade)).collect()
    }

    #[test]
    fn each_fault_of_a_worker_has_a_finding_and_a_remedy() {
        let well = (Subject::Worker, Grade::Ok);
        assert_eq!(worker(|_| ()), [well]);
        assert_eq!(worker(|row| row.answers = false), [(Subject::Worker, Grade::Warning)]);
        assert_eq!(worker(|row| row.note.draining = true), [(Subject::Worker, Grade::Warning)]);
        assert_eq!(worker(|row| row.note.version = "0.0.1".into()), [(Subject::Worker, Grade::Warning)]);
        let no_agent = worker(|row| row.note.missing = vec!["claude".into()]);
        assert_eq!(no_agent, [well, (Subject::Agent, Grade::Problem)]);
        let skewed = worker(|row| row.note.clock_ms += 3_600_000);
        assert_eq!(skewed, [well, (Subject::Clock, Grade::Warning)]);
        assert_eq!(worker(|row| row.note.disk = 1000), [well, (Subject::Disk, Grade::Problem)]);
    }

    #[test]
    fn only_the_own_machine_needs_no_encryption() {
        assert!(is_loopback("127.0.0.1:7233") && is_loopback("http://localhost:7233"));
        assert!(!is_loopback("fleet.example:7233") && !is_loopback("127.0.0.1.example:7233"));
    }
}
