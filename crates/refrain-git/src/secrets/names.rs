//! Files that nobody wants in a history whatever is in them, and files that programs wrote.

/// What the name of a file says, if it says that it holds a secret.
pub(super) fn says(path: &[u8]) -> Option<&'static str> {
    let path = String::from_utf8_lossy(path).to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default();
    if is_environment(name) {
        return Some("a file of secrets for an environment");
    }
    let by_name = NAMES.iter().find(|(names, _)| names.contains(&name)).map(|(_, what)| *what);
    let ends = |(end, _): &&(&str, &str)| path.ends_with(end) && path != end[1..];
    let by_end = || ENDS.iter().find(ends).map(|(_, what)| *what);
    let by_place = || {
        let is_there = |place: &str| path == place || path.ends_with(&format!("/{place}"));
        PLACES.iter().find(|(place, _)| is_there(place)).map(|(_, what)| *what)
    };
    let by_folder = || (path.contains("private-keys-v1.d/") && path.ends_with(".key")).then_some(KEY);
    by_name.or_else(by_end).or_else(by_place).or_else(by_folder)
}

/// `.env`, `.env.local`, `production.env`, but none that is there to be copied.
fn is_environment(name: &str) -> bool {
    const SHOWN: &[&str] = &[
        "example",
        "sample",
        "template",
        "tpl",
        "dist",
        "defaults",
        "default",
        "schema",
        "vault",
        "enc",
        "encrypted",
        "sops",
        "d",
        "ts",
        "js",
        "mjs",
        "cjs",
        "py",
        "rb",
        "go",
        "rs",
        "md",
        "txt",
        "spec",
        "keys",
    ];
    let mut parts = name.split(['.', '-', '_']).filter(|part| !part.is_empty());
    let is_one = name == ".env" || name.starts_with(".env.") || name.ends_with(".env");
    is_one && !parts.any(|part| SHOWN.contains(&part))
}

/// Whether an environment is one in which programs are tried: what stands in it is there for everybody, if it is harmless.
pub(super) fn is_rehearsal(path: &[u8]) -> bool {
    const TRIED: &[&str] = &["test", "testing", "tests", "ci", "e2e", "dev", "development"];
    let path = String::from_utf8_lossy(path).to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_local = name.split('.').any(|part| part == "local");
    is_environment(name) && !is_local && name.split(['.', '-', '_']).any(|part| TRIED.contains(&part))
}

const KEY: &str = "a private key";
const STORE: &str = "a store of keys";
const LOGIN: &str = "a file of passwords";
const CLOUD: &str = "credentials of a cloud";
const HISTORY: &str = "the history of a shell";

/// Whole names.
const NAMES: &[(&[&str], &str)] = &[
    (&["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", "identity.age"], KEY),
    (&["secring.gpg", "master.key", "ssh_host_rsa_key", "ssh_host_ecdsa_key", "ssh_host_ed25519_key"], KEY),
    (&[".netrc", "_netrc", ".pgpass", "pgpass.conf", ".htpasswd", ".git-credentials", ".dockercfg"], LOGIN),
    (&[".mylogin.cnf", ".fetchmailrc", "sitemanager.xml", "recentservers.xml", "logins.json"], LOGIN),
    (&[".vault-token", "credentials.tfrc.json", ".s3cfg", ".boto", "rclone.conf"], CLOUD),
    (&["application_default_credentials.json", "accesstokens.json", "msal_token_cache.json"], CLOUD),
    (&["kubeconfig", "kubeconfig.yaml", "kubeconfig.yml"], "a login to a cluster"),
    (&["terraform.tfstate", "terraform.tfstate.backup"], "the state of Terraform"),
    (&[".bash_history", ".zsh_history", ".sh_history", ".ash_history", "fish_history"], HISTORY),
    (&[".psql_history", ".mysql_history", ".rediscli_history", ".python_history"], HISTORY),
    (&["shadow", "gshadow"], LOGIN),
];

/// Ends of names, from the dot.
const ENDS: &[(&str, &str)] = &[
    (".p12", STORE),
    (".pfx", STORE),
    (".jks", STORE),
    (".keystore", STORE),
    (".bks", STORE),
    (".kdb", STORE),
    (".kdbx", STORE),
    (".keychain", STORE),
    (".keychain-db", STORE),
    (".keytab", STORE),
    (".ppk", KEY),
    (".agekey", KEY),
    (".tfstate", "the state of Terraform"),
    (".tfstate.backup", "the state of Terraform"),
    (".kubeconfig", "a login to a cluster"),
    (".tblk", "a login to a network"),
];

/// Names that say it only in their folder.
const PLACES: &[(&str, &str)] = &[
    (".aws/credentials", CLOUD),
    (".config/gcloud/credentials.db", CLOUD),
    (".config/gcloud/access_tokens.db", CLOUD),
    (".azure/azureprofile.json", CLOUD),
    (".oci/config", CLOUD),
    (".kube/config", "a login to a cluster"),
    (".docker/config.json", LOGIN),
    (".gem/credentials", LOGIN),
    (".cargo/credentials", LOGIN),
    (".cargo/credentials.toml", LOGIN),
    (".config/gh/hosts.yml", LOGIN),
    (".config/hub", LOGIN),
];

/// Whether it is a file that holds secrets and nothing else, if it holds anything: `secrets.json`.
pub(super) fn is_list_of_secrets(path: &[u8]) -> bool {
    path.rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.eq_ignore_ascii_case(b"secrets.json"))
}

/// Whether it is a file of settings, and not one of words in some language.
pub(super) fn is_settings(path: &[u8]) -> bool {
    const ENDS: &[&str] = &[
        ".ini",
        ".yaml",
        ".yml",
        ".json",
        ".json5",
        ".jsonc",
        ".toml",
        ".properties",
        ".conf",
        ".cfg",
        ".cnf",
        ".config",
        ".env",
    ];
    const WORDS: &[&str] = &[
        "i18n",
        "l10n",
        "locale",
        "locales",
        "lang",
        "langs",
        "language",
        "languages",
        "translation",
        "translations",
        "intl",
        "messages",
        "strings",
        "labels",
        "openapi",
        "swagger",
    ];
    let path = String::from_utf8_lossy(path).to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    let is_language = stem.len() == 2 || (stem.len() == 5 && matches!(stem.as_bytes()[2], b'-' | b'_'));
    let is_of_words = path.split(['/', '.', '_', '-']).any(|part| WORDS.contains(&part));
    (ENDS.iter().any(|end| name.ends_with(end)) || name.starts_with(".env")) && !is_language && !is_of_words
}

/// Whether a program wrote it for programs: what it assigns there are checksums, and names made short.
pub(super) fn is_generated(path: &[u8]) -> bool {
    const LOCKS: &[&str] = &[
        "package-lock.json",
        "npm-shrinkwrap.json",
        "pnpm-lock.yaml",
        "go.sum",
        "gopkg.lock",
        "packages.lock.json",
        "bun.lock",
        "flake.lock",
        "deno.lock",
        "module.bazel.lock",
    ];
    let path = String::from_utf8_lossy(path).to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_lock = LOCKS.contains(&name) || name.ends_with(".lock") || name.ends_with(".lockfile");
    is_lock
        || [".min.js", ".min.css", ".min.mjs", ".map", ".svg", ".ipynb_checkpoints"]
            .iter()
            .any(|end| name.ends_with(end))
}

/// Whether what is assigned in it stands in quotes, as in every language in which a name without quotes is a variable.
pub(super) fn is_code(path: &[u8]) -> bool {
    const CODE: &[&str] = &[
        "rs", "go", "js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "py", "pyi", "rb", "java", "kt",
        "kts", "scala", "c", "h", "cc", "cpp", "cxx", "hpp", "hh", "cs", "fs", "vb", "swift", "php", "lua",
        "pl", "pm", "ex", "exs", "erl", "hs", "ml", "mli", "clj", "cljs", "dart", "r", "jl", "zig", "nim",
        "vue", "svelte", "groovy", "gradle", "m", "mm", "sql", "tf", "hcl", "proto", "graphql", "css",
        "scss", "less", "sol", "v", "d", "pas", "lisp", "el", "nix", "bzl", "cmake", "astro", "elm", "cr",
        "coffee", "tfvars", "jsonnet", "cue", "star",
    ];
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let end = name.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    end.len() < name.len() && CODE.iter().any(|code| end.eq_ignore_ascii_case(code.as_bytes()))
}
