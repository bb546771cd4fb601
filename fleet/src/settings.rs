//! What the configuration says of the fleet. `fleet dev` takes the place of what it does not say.

use std::fs;

use camino::Utf8PathBuf;
use refrain_app::{Code, Context, RequestError};
use refrain_core::spec::Millis;
use refrain_engine::config::AgentChoice;
use refrain_engine::config::keys::{Fleet, Worker};
use refrain_engine::{Service, chain};
use serde::{Deserialize, Serialize};
use temporalio_client::envconfig::LoadClientConfigProfileOptions;
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions};
use temporalio_common::envconfig::load_client_config_profile;

use crate::order::Terms;

/// How long a connection may take.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(10);

/// What `fleet dev` says to the others of this user, as long as it runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DevNote {
    pub(crate) address: String,
    pub(crate) state: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    fleet: Fleet,
    pub(crate) worker: Worker,
    dev: Option<DevNote>,
}

/// The folder of `fleet dev`.
pub(crate) fn dev_folder(context: &Context) -> Utf8PathBuf {
    context.host.data_home.join("fleet/dev")
}

pub(crate) fn dev_note(context: &Context) -> Utf8PathBuf {
    dev_folder(context).join("running.json")
}

pub(crate) fn failed(what: impl std::fmt::Display) -> RequestError {
    RequestError::new(Code::Failed, what.to_string())
}

impl Settings {
    pub(crate) fn read(context: &Context) -> Result<Self, RequestError> {
        let service = Service::open(&context.dir, context.host.clone())?;
        let config = service.settings(AgentChoice::default(), context.has_variables())?.config;
        let dev = fs::read(dev_note(context)).ok().and_then(|note| serde_json::from_slice(&note).ok());
        Ok(Self { fleet: config.fleet, worker: config.worker, dev })
    }

    /// The git remote that has the loops.
    pub(crate) fn state(&self) -> Result<String, RequestError> {
        let dev = self.dev.as_ref().map(|dev| dev.state.clone());
        self.fleet.state.clone().or(dev).ok_or_else(|| {
            RequestError::usage("[fleet] state: it is missing; accepted: the address of a git remote")
                .hint("refrain fleet dev runs a fleet of one machine")
                .hint("refrain config set fleet.state ADDRESS names the git remote of another")
        })
    }

    pub(crate) fn pool(&self) -> String {
        self.fleet.pool.clone().unwrap_or_else(|| "default".to_owned())
    }

    pub(crate) fn terms(&self) -> Result<Terms, RequestError> {
        let usual = Terms::default();
        let span = |set: Option<Millis>, usual| set.map_or(usual, |Millis(span)| span);
        let terms = Terms {
            lease_ms: span(self.fleet.lease, usual.lease_ms),
            beat_ms: span(self.fleet.beat, usual.beat_ms),
            replicate_ms: span(self.fleet.replicate, usual.replicate_ms),
        };
        if terms.lease_ms < 6_000 || terms.beat_ms == 0 || terms.beat_ms * 3 > terms.lease_ms {
            let found = format!("lease = \"{} ms\", beat = \"{} ms\"", terms.lease_ms, terms.beat_ms);
            let accepted = "accepted: a lease of 6s or more, and a beat of a third of it or less";
            return Err(RequestError::usage(format!("[fleet] {found}: {accepted}")));
        }
        Ok(terms)
    }

    /// Where the server is: the variables and profiles of Temporal come first.
    pub(crate) async fn connect(&self, identity: &str) -> Result<Client, RequestError> {
        let wrong = |error: temporalio_common::envconfig::ConfigError| {
            RequestError::usage(format!("the settings of Temporal: {}", chain(&error)))
        };
        let mut profile =
            load_client_config_profile(LoadClientConfigProfileOptions::default(), None).map_err(wrong)?;
        let dev = self.dev.as_ref().map(|dev| dev.address.clone());
        let own = || self.fleet.address.clone().or(dev).unwrap_or_else(|| "127.0.0.1:7233".to_owned());
        let address = profile.address.get_or_insert_with(own).clone();
        let namespace = profile.namespace.clone().or_else(|| self.fleet.namespace.clone());
        let namespace = namespace.unwrap_or_else(|| "default".to_owned());
        let mut options = ConnectionOptions::try_from(profile).map_err(wrong)?;
        options.identity = identity.to_owned();
        options.connect_timeout = Some(CONNECT);
        let connected = tokio::time::timeout(CONNECT, Connection::connect(options)).await;
        let why = match connected {
            Ok(Ok(connection)) => {
                return Client::new(connection, ClientOptions::new(namespace).build())
                    .map_err(|error| failed(chain(&error)));
            }
            Ok(Err(error)) => chain(&error),
            Err(_) => format!("no answer within {} s", CONNECT.as_secs()),
        };
        Err(failed(format!("the server of the fleet, {address}, cannot be reached: {why}"))
            .hint("loops that are driven go on until their lease ends; reading verbs need no server")
            .hint("refrain fleet dev runs one here; [fleet] address, or TEMPORAL_ADDRESS, names another"))
    }
}
