//! Other machines: `[fleet]`, `[worker]`, `[trust]`.

use std::str::FromStr;

use refrain_core::signature::PublicKey;
use refrain_core::spec::{AgentKind, Millis};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::value_text::{self, ValueText};

/// `[fleet]`: the server of Temporal that gives loops to workers, and the git remote that has them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Fleet {
    /// Where the server is: HOST:PORT.
    #[schemars(extend("default" = "127.0.0.1:7233"))]
    pub address: Option<String>,
    /// The namespace there.
    #[schemars(extend("default" = "default"))]
    pub namespace: Option<String>,
    /// How the connection to the server is encrypted. TEMPORAL_API_KEY holds a key of the service, if it needs one.
    pub tls: Option<FleetTls>,
    /// The git remote that has the journals and branches of loops: its address.
    pub state: Option<String>,
    /// Where logs of more than 256 KiB are kept whole: `git` (only their begin and end, in the git remote), a folder that all
    /// machines reach (`file:///FOLDER`), or a bucket (`s3://BUCKET/PREFIX`).
    #[serde(deserialize_with = "value_text::logs")]
    #[schemars(with = "Option<String>", extend("default" = "git"))]
    pub blobs: Option<BlobPlace>,
    /// Which workers may take them: those that serve this pool.
    #[schemars(extend("default" = "default"))]
    pub pool: Option<String>,
    /// Whose loops these are: teams that wait for the same workers get equal shares of them.
    pub team: Option<String>,
    /// After how long without a sign of its worker a loop is given to another; the agents of the one that was lost are ended
    /// after two thirds of it.
    #[serde(deserialize_with = "value_text::duration")]
    #[schemars(with = "Option<ValueText>", extend("default" = "90s"))]
    pub lease: Option<Millis>,
    /// How often a worker gives that sign.
    #[serde(deserialize_with = "value_text::duration")]
    #[schemars(with = "Option<ValueText>", extend("default" = "20s"))]
    pub beat: Option<Millis>,
    /// How long a worker may fail to reach the git remote before it gives the loop away.
    #[serde(deserialize_with = "value_text::duration")]
    #[schemars(with = "Option<ValueText>", extend("default" = "60s"))]
    pub replicate: Option<Millis>,
}

/// Where long logs are kept whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobPlace {
    /// Nowhere: the git remote has their begin and end.
    Git,
    /// A folder, by an absolute path.
    Folder(String),
    /// A bucket, and what the names in it begin with: all of the address.
    S3(String),
}

impl FromStr for BlobPlace {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bucket = text.strip_prefix("s3://").map(|rest| rest.split('/').next().unwrap_or_default());
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        };
        match (text, text.strip_prefix("file://")) {
            ("git", _) => Ok(Self::Git),
            (_, Some(folder)) if folder.starts_with('/') && folder.len() > 1 => {
                Ok(Self::Folder(folder.to_owned()))
            }
            _ if bucket.is_some_and(is_name) => Ok(Self::S3(text.trim_end_matches('/').to_owned())),
            _ => Err("accepted: git, file:///FOLDER or s3://BUCKET/PREFIX"),
        }
    }
}

/// `[fleet] tls`: files in the PEM format. Without any, the authorities of the system decide who the server is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct FleetTls {
    /// The certificate of the authority that signed the server's.
    pub ca: Option<String>,
    /// The certificate of this machine, with its key: the server may want to know who asks.
    pub cert: Option<String>,
    /// The private key of that certificate.
    pub key: Option<String>,
    /// The name in the server's certificate, where it is not that of its address.
    pub name: Option<String>,
}

/// `[worker]`: loops of others run commands on this machine, so nothing is taken that is not named here.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Worker {
    /// The git remotes whose loops it takes: their addresses.
    #[schemars(extend("default" = []))]
    pub remotes: Vec<String>,
    /// The kinds of agents that it runs; `generic` is any command.
    #[schemars(extend("default" = []))]
    pub agents: Vec<AgentKind>,
    /// The pools that it serves.
    #[schemars(extend("default" = ["default"]))]
    pub pools: Vec<String>,
    /// How many loops it drives at a time.
    #[schemars(range(min = 1, max = 1000), extend("default" = 2))]
    pub slots: Option<u32>,
    /// What the fleet calls it; without it the name of the machine.
    pub name: Option<String>,
}

/// `[trust]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Signers {
    /// Public keys of other homes of yours, as `refrain doctor` there names them: what they signed is signed here too.
    #[schemars(extend("default" = []))]
    pub signers: Vec<PublicKey>,
}

#[cfg(test)]
mod tests {
    use super::BlobPlace;

    #[test]
    fn long_logs_are_in_git_a_folder_or_a_bucket() {
        for (text, place) in [
            ("git", BlobPlace::Git),
            ("file:///mnt/logs", BlobPlace::Folder("/mnt/logs".to_owned())),
            ("s3://logs", BlobPlace::S3("s3://logs".to_owned())),
            ("s3://my.logs-1/of/refrain/", BlobPlace::S3("s3://my.logs-1/of/refrain".to_owned())),
        ] {
            assert_eq!(text.parse::<BlobPlace>(), Ok(place));
        }
        for other in [
            "",
            "Git",
            "/mnt/logs",
            "file://logs",
            "file:///",
            "s3://",
            "s3:///a",
            "s3://me:key@logs",
            "gs://a",
        ] {
            assert!(other.parse::<BlobPlace>().is_err(), "{other}");
        }
    }
}
