//! How people hear of loops and see them: `[notify]`, `[slack]`, `[telemetry]`, `[top]`.

use camino::Utf8PathBuf;
use refrain_core::spec::Millis;
use refrain_core::values::Limit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::value_text::{self, Command, ValueText};

/// `[notify]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Notify {
    /// Where (`--notify`).
    #[schemars(extend("default" = "off"))]
    pub how: Option<NotifyHow>,
    /// A command that is given the message too (`--notify-command`).
    pub command: Option<Command>,
    /// Where each is posted to as JSON, signed: a URL of http or https. The secret stands elsewhere.
    pub webhook: Option<String>,
    /// A topic of an ntfy server, in place of a webhook: `https://ntfy.sh/TOPIC`, or `https://:TOKEN@HOST/TOPIC`.
    pub ntfy: Option<String>,
    /// The topic that `refrain serve` reads answers and approvals from, another one than `ntfy`. Only in the user's own file.
    pub ntfy_replies: Option<String>,
    /// Waits for a provider that are longer are told too: like "30m"; or "none".
    #[serde(deserialize_with = "value_text::duration_limit")]
    #[schemars(with = "Option<ValueText>", extend("default" = "none"))]
    pub wait_longer_than: Option<Limit<Millis>>,
}

/// Where a notification is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotifyHow {
    /// On the terminal that shows the loop; on the desktop, where no terminal does.
    Auto,
    /// On the terminal.
    Terminal,
    /// On the desktop.
    Desktop,
    /// Nowhere.
    Off,
}

/// `[slack]`: what `refrain serve` does with a workspace of Slack. The tokens stand elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Slack {
    /// The ids of the channels that are heard; all that the app was invited to, where none is named. Notices go to the first.
    pub channels: Vec<String>,
    /// The ids of the people who may start loops, and steer them. Others may not.
    pub may_start: Vec<String>,
    /// The ids of the people who may stop loops. Others may not.
    pub may_stop: Vec<String>,
    /// The folders of the projects that loops may be started in, each called by the folder's name; the one that `serve` is run
    /// in, where none is named.
    #[schemars(with = "Vec<String>")]
    pub projects: Vec<Utf8PathBuf>,
    /// Whether the ends of loops are told that were started elsewhere.
    #[schemars(extend("default" = false))]
    pub notify: Option<bool>,
    /// Where Slack's Web API is: a URL of http or https.
    #[schemars(extend("default" = "https://slack.com/api"))]
    pub api_url: Option<String>,
}

/// `[telemetry]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Telemetry {
    /// A collector of OpenTelemetry that takes traces over HTTP, where `OTEL_EXPORTER_OTLP_ENDPOINT` names none: a URL of
    /// http or https, like "http://localhost:4318".
    pub endpoint: Option<String>,
}

/// `[top]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Top {
    /// The background that its colours are for.
    #[schemars(extend("default" = "auto"))]
    pub theme: Theme,
}

/// The background of a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Theme {
    /// As the terminal says with `COLORFGBG`; dark if it does not.
    #[default]
    Auto,
    /// A dark one.
    Dark,
    /// A light one.
    Light,
}
