//! Files that nobody wants in a history whatever is in them, and files that programs wrote: rules over paths, in lower case.

const KEY: &str = "a private key";
const STORE: &str = "a store of keys";
const LOGIN: &str = "a file of passwords";
const CLOUD: &str = "credentials of a cloud";
const CLUSTER: &str = "a login to a cluster";
const STATE: &str = "the state of Terraform";
const HISTORY: &str = "the history of a shell";

/// Whole names, also with the folder that alone says it.
const NAMES: &[(&str, &str)] = &[
    ("id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk identity.age secring.gpg master.key", KEY),
    ("ssh_host_rsa_key ssh_host_ecdsa_key ssh_host_ed25519_key", KEY),
    (
        ".netrc _netrc .pgpass pgpass.conf .htpasswd .git-credentials .dockercfg .mylogin.cnf .fetchmailrc",
        LOGIN,
    ),
    (
        "sitemanager.xml recentservers.xml logins.json shadow gshadow .docker/config.json .gem/credentials",
        LOGIN,
    ),
    (".cargo/credentials .cargo/credentials.toml .config/gh/hosts.yml .config/hub", LOGIN),
    (
        ".vault-token credentials.tfrc.json .s3cfg .boto rclone.conf accesstokens.json msal_token_cache.json",
        CLOUD,
    ),
    ("application_default_credentials.json .aws/credentials .config/gcloud/credentials.db", CLOUD),
    (".config/gcloud/access_tokens.db .azure/azureprofile.json .oci/config", CLOUD),
    ("kubeconfig kubeconfig.yaml kubeconfig.yml .kube/config", CLUSTER),
    ("terraform.tfstate terraform.tfstate.backup", STATE),
    (
        ".bash_history .zsh_history .sh_history .ash_history fish_history .psql_history .mysql_history",
        HISTORY,
    ),
    (".rediscli_history .python_history", HISTORY),
];

/// Ends of names, from the dot.
const ENDS: &[(&str, &str)] = &[
    (".p12 .pfx .jks .keystore .bks .kdb .kdbx .keychain .keychain-db .keytab", STORE),
    (".ppk .agekey", KEY),
    (".tfstate .tfstate.backup", STATE),
    (".kubeconfig", CLUSTER),
    (".tblk", "a login to a network"),
];

/// Parts of the name of an environment that is there to be copied, or is encrypted, or is none.
const SHOWN: &str = "example sample template tpl dist defaults default schema vault enc encrypted sops d ts js mjs cjs py rb go rs md txt spec keys";

/// Parts of the name of an environment in which programs are tried.
const TRIED: &str = "test testing tests ci e2e dev development";

const SETTINGS: &str = ".ini .yaml .yml .json .json5 .jsonc .toml .properties .conf .cfg .cnf .config .env";

/// Parts of paths that have words in some language.
const WORDS: &str = "i18n l10n locale locales lang langs language languages translation translations intl messages strings labels openapi swagger";

/// Ends of names of what programs wrote for programs.
const GENERATED: &str = ".lock .lockfile .min.js .min.css .min.mjs .map .svg .ipynb_checkpoints";
const LOCKS: &str = "package-lock.json npm-shrinkwrap.json pnpm-lock.yaml go.sum packages.lock.json";

/// Ends of names of files in which a name without quotes is a variable.
const CODE: &str = "rs go js jsx ts tsx mjs cjs mts cts py pyi rb java kt kts scala c h cc cpp cxx hpp hh cs fs vb swift php lua pl pm ex exs erl hs ml mli clj cljs dart r jl zig nim vue svelte groovy gradle m mm sql tf hcl proto graphql css scss less sol v d pas lisp el nix bzl cmake astro elm cr coffee tfvars jsonnet cue star";

/// What the name of a file says, if it says that it holds a secret.
pub(super) fn says(path: &[u8]) -> Option<&'static str> {
    let (path, name) = lower(path);
    if is_environment(&name) {
        return Some("a file of secrets for an environment");
    }
    let is_named =
        |it: &str| path.strip_suffix(it).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'));
    let has_end = |it: &str| path.strip_suffix(it).is_some_and(|stem| !stem.is_empty());
    let find = |table: &'static [(&str, &str)], is: &dyn Fn(&str) -> bool| {
        table.iter().find(|(names, _)| names.split(' ').any(is)).map(|(_, what)| *what)
    };
    let is_in_ring = path.contains("private-keys-v1.d/") && path.ends_with(".key");
    find(NAMES, &is_named).or_else(|| find(ENDS, &has_end)).or(is_in_ring.then_some(KEY))
}

fn lower(path: &[u8]) -> (String, String) {
    let path = String::from_utf8_lossy(path).to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    (path, name)
}

fn has_part(name: &str, list: &str) -> bool {
    name.split(['/', '.', '-', '_']).any(|part| list.split(' ').any(|it| it == part))
}

fn has_end(name: &str, list: &str) -> bool {
    list.split(' ').any(|end| name.ends_with(end))
}

/// `.env`, `.env.local`, `production.env`, but none that is there to be copied.
fn is_environment(name: &str) -> bool {
    (name == ".env" || name.starts_with(".env.") || name.ends_with(".env")) && !has_part(name, SHOWN)
}

/// Whether an environment is one in which programs are tried: what stands in it is there for everybody, if it is harmless.
pub(super) fn is_rehearsal(path: &[u8]) -> bool {
    let (_, name) = lower(path);
    is_environment(&name) && has_part(&name, TRIED) && !name.split('.').any(|part| part == "local")
}

/// Whether it is a file that holds secrets and nothing else, if it holds anything: `secrets.json`.
pub(super) fn is_list_of_secrets(path: &[u8]) -> bool {
    lower(path).1 == "secrets.json"
}

/// Whether it is a file of settings, and not one of words in some language.
pub(super) fn is_settings(path: &[u8]) -> bool {
    let (path, name) = lower(path);
    let stem = name.split('.').next().unwrap_or_default();
    let is_language = stem.len() == 2 || (stem.len() == 5 && matches!(stem.as_bytes()[2], b'-' | b'_'));
    (has_end(&name, SETTINGS) || name.starts_with(".env")) && !is_language && !has_part(&path, WORDS)
}

/// Whether a program wrote it for programs: what it assigns there are checksums, and names made short.
pub(super) fn is_generated(path: &[u8]) -> bool {
    let (_, name) = lower(path);
    has_end(&name, GENERATED) || LOCKS.split(' ').any(|lock| lock == name)
}

/// Whether what is assigned in it stands in quotes, as in every language in which a name without quotes is a variable.
pub(super) fn is_code(path: &[u8]) -> bool {
    let (_, name) = lower(path);
    name.rsplit_once('.').is_some_and(|(_, end)| CODE.split(' ').any(|code| code == end))
}
