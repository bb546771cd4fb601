//! The planted secrets: every kind in some carriers, and every carrier with some kinds.

use super::super::tests::{BASE64, Chance, NAMES, SETTINGS, TOKENS};
use super::{Sample, fill};

/// Carriers of a token that is recognized by its format: `@` is replaced by it.
const TEXTS: &[(&str, &str)] = &[
    ("src/client.rs", "let client = Client::new(\"@\");\n"),
    ("src/app.js", "export const config = { url: 'https://api.internal', value: '@' };\n"),
    ("src/app.py", "session = connect(\n    \"@\",\n)\n"),
    ("App.java", "        String x = \"@\";\n"),
    ("main.go", "var x = `@`\n"),
    ("x.php", "<?php $x = '@';\n"),
    ("a.c", "static const char x[] = \"@\";\n"),
    ("config.toml", "[remote]\nvalue = \"@\"\n"),
    ("config.yaml", "remote:\n  value: @\n"),
    ("list.yaml", "remote:\n  - @\n"),
    ("config.json", "{\"remote\": {\"value\": \"@\"}}\n"),
    ("config.ini", "[remote]\nvalue=@\n"),
    ("app.properties", "remote.value=@\r\n"),
    ("notes.md", "Use @ for the staging account.\n"),
    ("notes.rst", "::\n\n    connect @\n"),
    ("README.md", "Call `tool login @` first.\n"),
    ("data.csv", "id,name,value\n1,me,@\n2,you,none\n"),
    ("data.tsv", "1\tme\t@\n"),
    ("deploy.sh", "export VALUE=@\n"),
    ("run.sh", "tool --value @ --verbose\n"),
    ("Dockerfile", "FROM alpine\nRUN fetch @\n"),
    ("index.html", "<div data-value=\"@\"></div>\n"),
    ("a.xml", "<config><value>@</value></config>\n"),
    ("a.sql", "INSERT INTO settings VALUES (1, '@');\n"),
    ("seed.rb", "Setting.create!(value: '@')\n"),
    ("a.ipynb", "{\"cells\": [{\"source\": [\"connect('@')\\n\"], \"outputs\": []}]}\n"),
    ("nested.json", "{\"body\": \"{\\\"value\\\": \\\"@\\\"}\"}\n"),
    ("a.har", "{\"request\": {\"headers\": [{\"name\": \"X-Thing\", \"value\": \"@\"}]}}\n"),
    ("app.min.js", "!function(e){var t=\"@\";e.exports=t}(window);\n"),
    ("app.js.map", "{\"version\":3,\"sourcesContent\":[\"const a = '@';\\n\"],\"mappings\":\"AAAA\"}\n"),
    ("yarn.lock", "thing:\n  resolved \"https://registry.internal/thing?value=@\"\n"),
    ("change.diff", "--- a/x\n+++ b/x\n-none\n+@\n"),
    ("tests/fixtures/response.json", "{\"value\": \"@\"}\n"),
    ("url.txt", "https://api.internal/v1/@\n"),
    ("query.txt", "https://api.internal/v1?value=@&x=1\n"),
    ("last.txt", "@"),
    ("a.tex", "\\newcommand{\\remote}{@}\n"),
    ("a.lua", "return { value = [[@]] }\n"),
    ("a.ps1", "$value = '@'\r\n"),
    ("a.bat", "set VALUE=@\r\n"),
    ("link", "../elsewhere/@"),
    ("a.tf", "provider \"x\" {\n  value = \"@\"\n}\n"),
];

/// Values that are recognized by their name, as far as the old corpus lacks them.
const NAMED: &[(&str, &str, &str)] = &[
    ("secure string", "a.ps1", "$p = ConvertTo-SecureString \"{a6}!{a8}\" -AsPlainText -Force\r\n"),
    ("secure string", "b.ps1", "ConvertTo-SecureString -String '{t14}' -AsPlainText -Force\n"),
    ("secure string", "c.ps1", "$p = ConvertTo-SecureString -AsPlainText -Force '{t14}'\n"),
    ("sql password", "init.sql", "CREATE USER app WITH PASSWORD '{t16}';\n"),
    ("sql password", "seed.sql", "CREATE USER 'app'@'%' IDENTIFIED BY '{t16}';\n"),
    ("sql password", "role.sql", "ALTER ROLE app WITH LOGIN ENCRYPTED PASSWORD '{t16}';\n"),
    ("sql password", "ms.sql", "CREATE LOGIN app WITH PASSWORD = N'{t16}';\n"),
    ("sql password", "db.py", "cursor.execute(\"ALTER USER app IDENTIFIED BY '{t16}'\")\n"),
    ("sql password", "my.sql", "CREATE USER app IDENTIFIED WITH mysql_native_password BY '{t16}';\n"),
    ("auth header", "a.json", "{~\"X-Auth\": \"{a32}\"}\n"),
    ("auth header", "call.py", "headers = {~'X-Auth': '{h40}'}\n"),
    ("auth header", "call.js", "fetch(u, {~headers: {~'X-Api-Key': '{a32}'}})\n"),
    ("auth header", "call.sh", "curl -H 'X-Vault-Token: {a26}' https://vault.internal\n"),
    ("auth header", "a.http", "GET /\nPrivate-Token: {a20}\n"),
    (
        "recorded header",
        "cassette.yml",
        "    headers:\n      X-Api-Key:\n      - {a32}\n      Accept:\n      - '*/*'\n",
    ),
    ("recorded header", "cassette.json", "{~\"headers\": {~\"X-Api-Key\": [\"{a32}\"]}}\n"),
    ("query", "a.py", "URL = \"https://api.internal/v1?password={a16}\"\n"),
    ("query", "a.js", "fetch('https://api.internal/v1?q=1&api_key={a32}')\n"),
    ("query", "A.java", "String u = \"https://api.internal/?token={a32}\";\n"),
    ("query", "a.go", "const u = \"https://api.internal/?access_token={a40}&x=1\"\n"),
    ("query", "a.rb", "URL = 'https://api.internal/?client_secret={a32}'\n"),
    ("query", "a.ts", "const u = `https://api.internal/?apikey={h32}`;\n"),
    (
        "kubernetes",
        "s.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\nstringData:\n  thing: {a24}\n",
    ),
    ("kubernetes", "s.yml", "kind: Secret\ndata:\n  one: eW91cg==\n  two: {b43}=\ntype: Opaque\n"),
    ("kubernetes", "s.json", "{~\"kind\": \"Secret\", \"data\": {~\"thing\": \"{b43}=\"}}\n"),
    (
        "kubernetes",
        "many.yaml",
        "kind: ConfigMap\ndata:\n  a: b\n---\nkind: Secret\nstringData:\n  thing: \"{a24}\"\n",
    ),
    ("service account", "a.txt", "eyJ0eXBlIjog~InNlcnZpY2VfYWNjb3VudCIsICJwcm9qZWN0X2lkIjog{b800}\n"),
    ("service account", "b.yaml", "blob: ewogICJ0eXBlIjog~InNlcnZpY2VfYWNjb3VudCIsCiAg{b800}\n"),
    (
        "state of terraform",
        "backup.json",
        "{~\"version\": 4, \"terraform_version\": \"1.9.0\", \"serial\": 3, \"lineage\": \"<uuid>\"}\n",
    ),
    (
        "cookie jar",
        "cookies.txt",
        "# Netscape HTTP Cookie File\n.internal\tTRUE\t/\tTRUE\t1900000000\tsid\t{a32}\n",
    ),
    ("told", "notes.md", "The root password is {a6}!{d3}{a6}\n"),
    ("told", "mail.txt", "The password for build is \"{a4}-{a6}#{d2}\".\n"),
    ("token in base64", "a.txt", "Z2hw~Xz{b48}==\n"),
    ("token in base64", "b.txt", "value: QUtJ~QVU{b20}=\n"),
    ("token in base64", "c.txt", "c2st~YW50LWFwaTAz{b60}\n"),
    ("token in base64", "d.yaml", "thing: Z2l0aHVi~X3BhdF8{b60}\n"),
    ("next line", "a.ts", "export const apiKey =\n  \"{a32}\";\n"),
    ("tfvars", "prod.tfvars", "db_password = \"{t16}\"\n"),
    ("maven", "settings.xml", "<server><username>me</username><password>{t16}</password></server>\n"),
    ("gradle", "gradle.properties", "signing.keyPassword={t16}\n"),
    ("npmrc", "sub/.npmrc", "//registry.internal/:_auth~Token={a36}\n"),
    ("docker login", "docker.json", "{~\"auths\": {~\"registry.internal\": {~\"auth\": \"{b40}\"}}}\n"),
    ("kubeconfig", "conf.yaml", "users:\n- user:\n    client-key-data: LS0t{b200}\n"),
    (
        "login in lock file",
        "package-lock.json",
        "\"resolved\": \"https~://build:{a24}@registry.internal/x.tgz\"\n",
    ),
];

/// Heads of private keys in DER.
const DER: &[(&str, &[u8])] = &[
    ("pkcs8.der", b"\x30\x82\x04\xbd\x02\x01\x00\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00\x04\x82\x04\xa7"),
    ("pkcs1.bin", b"\x30\x82\x04\xa4\x02\x01\x00\x02\x82\x01\x01\x00\xc5"),
    ("sec1.der", b"\x30\x77\x02\x01\x01\x04\x20"),
    ("ec.bin", b"\x30\x81\x87\x02\x01\x00\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01"),
    ("ed25519.key", b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20"),
];

fn bytes(chance: &mut Chance, len: usize) -> Vec<u8> {
    (0..len).map(|_| u8::try_from(chance.next(256)).unwrap()).collect()
}

fn wide(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().flat_map(|byte| [byte, 0])
}

/// The two parts of a token, split between two letters or digits.
fn halves<'t>(chance: &mut Chance, token: &'t str) -> (&'t str, &'t str) {
    let is_inner = |at: &usize| {
        let around = &token.as_bytes()[at - 2..at + 2];
        around.iter().all(u8::is_ascii_alphanumeric)
    };
    let places: Vec<usize> = (2..token.len() - 2).filter(is_inner).collect();
    token.split_at(places[chance.next(places.len())])
}

fn in_bytes(chance: &mut Chance, what: &str, token: &str, samples: &mut Vec<Sample>) {
    let mut add = |path: &str, bytes: Vec<u8>| samples.push(Sample::new(what, path, bytes));
    let line = format!("value = {token}\r\n");
    let prose = "All of this is plain text, line after line.\r\n".repeat(60);
    add("a.reg", [0xff, 0xfe].into_iter().chain(wide(&line)).collect());
    add("b.reg", wide(&line).collect());
    add("be.txt", [0xfe, 0xff].into_iter().chain(line.bytes().flat_map(|byte| [0, byte])).collect());
    add("wide.txt", line.bytes().flat_map(|byte| [byte, 0, 0, 0]).collect());
    add("behind.log", prose.bytes().chain(wide(&line)).collect());
    add("behind.res", [bytes(chance, 2000), b"\0\0".to_vec(), wide(&line).collect()].concat());
    add("blob.bin", [bytes(chance, 300), format!("\0{token}\0").into_bytes(), bytes(chance, 300)].concat());
    add("a.zip", [b"PK\x03\x04\x14\0\0\0\0\0a.txtkey=", token.as_bytes(), b"PK\x01\x02\x14\0"].concat());
    let (start, end) = halves(chance, token);
    for unseen in ["\u{200b}", "\u{2060}", "\u{feff}", "\u{ad}"] {
        add("unseen.md", format!("Use {start}{unseen}{end} here.\n").into_bytes());
    }
    add("joined.py", format!("X = (\n    \"{start}\"\n    \"{end}\"\n)\n").into_bytes());
    add("joined.js", format!("const x = '{start}' + '{end}';\n").into_bytes());
    add("Joined.java", format!("String x = \"{start}\" +\n    \"{end}\";\n").into_bytes());
    add("joined.c", format!("char *x = \"{start}\" \"{end}\";\n").into_bytes());
    add("joined.php", format!("$x = '{start}' . '{end}';\n").into_bytes());
    add("joined.sh", format!("X={start}\\\n{end}\n").into_bytes());
    add(&format!("{token}.txt").replace("://", "-"), b"nothing\n".to_vec());
    add(&format!("src/{token}/a.rs").replace("://", "-"), b"fn a() {}\n".to_vec());
}

/// Keys with a header, in many places.
fn keys(chance: &mut Chance, samples: &mut Vec<Sample>) {
    for kind in ["", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED "] {
        let (begin, body) = (format!("-----BEGIN {kind}PRIVATE {}-----", "KEY"), chance.of(BASE64, 64));
        for (path, text) in [
            ("server.pem", format!("{begin}\n{body}\n{body}\n")),
            ("windows.pem", format!("{begin}\r\n{body}\r\n{body}\r\n")),
            ("account.json", format!("{{\"private_key\": \"{begin}\\n{body}\\n\"}}")),
            ("key.js", format!("const k = '{begin}\\n' +\n  '{body}\\n';")),
            ("key.go", format!("var k = `{begin}\n{body}\n`")),
            ("key.yaml", format!("tls:\n  key: |\n    {begin}\n    {body}\n    {body}\n")),
            ("key.py", format!("K = \"\"\"{begin}\n{body}\n\"\"\"\n")),
            ("a.env.txt", format!("TLS=\"{begin}\\n{body}\\n\"\n")),
        ] {
            samples.push(Sample::new(format!("{kind}key"), path, text));
        }
    }
    for (path, head) in DER {
        samples.push(Sample::new("key in DER", *path, [head.to_vec(), bytes(chance, 400)].concat()));
    }
}

pub(super) fn planted(chance: &mut Chance) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut carry = |chance: &mut Chance, kind: &str, (path, text): (&str, &str)| {
        let token = chance.shape(kind);
        samples.push(Sample::new(kind, path, text.replace('@', &token)));
    };
    for kind in TOKENS {
        for _ in 0..3 {
            let text = TEXTS[chance.next(TEXTS.len())];
            carry(chance, kind, text);
        }
    }
    for text in TEXTS {
        for _ in 0..4 {
            let kind = TOKENS[chance.next(TOKENS.len())];
            carry(chance, kind, *text);
        }
    }
    for _ in 0..6 {
        let kind = TOKENS[chance.next(TOKENS.len())];
        let token = chance.shape(kind);
        in_bytes(chance, kind, &token, &mut samples);
    }
    for (path, shape) in SETTINGS {
        samples.push(Sample::new(*shape, *path, chance.shape(shape)));
    }
    for (what, path, shape) in NAMED {
        samples.push(Sample::new(*what, *path, fill(chance, shape)));
    }
    let login = chance.shape("postgres~://app:{a20}@db.internal/app");
    let mut binary = [bytes(chance, 400), login.into_bytes()].concat();
    binary.extend([b"\0".to_vec(), bytes(chance, 400)].concat());
    samples.push(Sample::new("login in binary", "core.bin", binary));
    let mut log = "2026-01-01T00:00:00Z INFO all is well with request 17 of worker 4\n".repeat(12_000);
    log.push_str(&chance.shape("2026-01-01T00:00:01Z DEBUG sent gh~p_{a36}\n"));
    samples.push(Sample::new("token in a long log", "build.log", log));
    samples.extend(NAMES.iter().map(|name| Sample::new("name", *name, "something")));
    keys(chance, &mut samples);
    samples
}
