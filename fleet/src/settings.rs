//! What the configuration says of the fleet. `fleet dev` takes the place of what it does not say.

use std::fs;

use camino::Utf8PathBuf;
use refrain_app::{Code, Context, RequestError};
use refrain_core::spec::Millis;
use refrain_engine::config::AgentChoice;
use refrain_engine::config::keys::{BlobPlace, Fleet, Worker};
use refrain_engine::{Service, chain};
use serde::{Deserialize, Serialize};
use temporalio_client::envconfig::LoadClientConfigProfileOptions;
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions};
use temporalio_common::envconfig::{
    ClientConfigProfile, ClientConfigTLS, ConfigError, DataSource, load_client_config_profile,
};

use crate::order::Terms;

/// How long a connection may take.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(10);
/// How long to wait before a server that is about to answer is asked again.
const AGAIN: std::time::Duration = std::time::Duration::from_millis(200);

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

fn wrong(error: ConfigError) -> RequestError {
    RequestError::usage(format!("the settings of Temporal: {}", chain(&error)))
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

    /// Where long logs are kept.
    pub(crate) fn blobs(&self) -> BlobPlace {
        self.fleet.blobs.clone().unwrap_or(BlobPlace::Git)
    }

    /// Whose loops these are.
    pub(crate) fn team(&self) -> Option<&str> {
        self.fleet.team.as_deref()
    }

    pub(crate) fn terms(&self) -> Result<Terms, RequestError> {
        let usual = Terms::default();
        let span = |set: Option<Millis>, usual| set.map_or(usual, |Millis(span)| span);
        let terms = Terms {
            lease_ms: span(self.fleet.lease, usual.lease_ms),
            beat_ms: span(self.fleet.beat, usual.beat_ms),
            replicate_ms: span(self.fleet.replicate, usual.replicate_ms),
        };
        if !terms.are_fit() {
            let Terms { lease_ms, beat_ms, replicate_ms } = terms;
            let found = format!(
                "lease = \"{lease_ms} ms\", beat = \"{beat_ms} ms\", replicate = \"{replicate_ms} ms\""
            );
            let accepted = "accepted: a lease of 6s to 24h, a beat of a third of it or less, and at most 24h to replicate";
            return Err(RequestError::usage(format!("[fleet] {found}: {accepted}")));
        }
        Ok(terms)
    }

    /// The same, but for what is said.
    pub(crate) fn with(mut self, address: Option<String>, namespace: Option<String>) -> Self {
        self.fleet.address = address.or(self.fleet.address);
        self.fleet.namespace = namespace.or(self.fleet.namespace);
        self
    }

    /// How the server is reached: the variables and profiles of Temporal come first.
    fn profile(&self) -> Result<ClientConfigProfile, RequestError> {
        let mut profile =
            load_client_config_profile(LoadClientConfigProfileOptions::default(), None).map_err(wrong)?;
        let dev = self.dev.as_ref().map(|dev| dev.address.clone());
        let own = || self.fleet.address.clone().or(dev).unwrap_or_else(|| "127.0.0.1:7233".to_owned());
        profile.address.get_or_insert_with(own);
        let namespace = || self.fleet.namespace.clone().unwrap_or_else(|| "default".to_owned());
        profile.namespace.get_or_insert_with(namespace);
        if let (None, Some(own)) = (&profile.tls, &self.fleet.tls) {
            let file = |path: &Option<String>| path.clone().map(DataSource::Path);
            let mut tls = ClientConfigTLS::default();
            tls.disabled = Some(false);
            tls.server_ca_cert = file(&own.ca);
            tls.client_cert = file(&own.cert);
            tls.client_key = file(&own.key);
            tls.server_name.clone_from(&own.name);
            profile.tls = Some(tls);
        }
        Ok(profile)
    }

    pub(crate) fn address(&self) -> Result<String, RequestError> {
        Ok(self.profile()?.address.unwrap_or_default())
    }

    pub(crate) fn is_encrypted(&self) -> Result<bool, RequestError> {
        let profile = self.profile()?;
        Ok(profile.tls.map_or(profile.api_key.is_some(), |tls| tls.disabled != Some(true)))
    }

    pub(crate) async fn connect(&self, identity: &str) -> Result<Client, RequestError> {
        let profile = self.profile()?;
        let address = profile.address.clone().unwrap_or_default();
        let namespace = profile.namespace.clone().unwrap_or_default();
        let mut options = ConnectionOptions::try_from(profile).map_err(wrong)?;
        options.identity = identity.to_owned();
        options.connect_timeout = Some(CONNECT);
        // A server that was just started listens before it answers.
        let connect = async {
            loop {
                match Connection::connect(options.clone()).await {
                    Err(error) if chain(&error).contains("not healthy yet") => {
                        tokio::time::sleep(AGAIN).await
                    }
                    connected => return connected,
                }
            }
        };
        let connected = tokio::time::timeout(CONNECT, connect).await;
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
