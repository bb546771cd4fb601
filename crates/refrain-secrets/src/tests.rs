//! Planted secrets, all of which must be found, and harmless files, none of which should be refused. The secrets are
//! joined from pieces: no text of this repository looks like one.

use super::*;

/// Pseudo-random numbers that are the same in every run.
pub(super) struct Chance(pub(super) u64);

const DIGITS: &str = "0123456789";
const HEX: &str = "0123456789abcdef";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
pub(super) const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const TYPED: &str = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789!#%&*+?@^~";

const DJANGO: &str = "abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)";

impl Chance {
    pub(super) fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }

    pub(super) fn of(&mut self, alphabet: &str, len: usize) -> String {
        loop {
            let bytes = alphabet.as_bytes();
            let text: String = (0..len).map(|_| char::from(bytes[self.next(bytes.len())])).collect();
            // Password generators include every kind of character.
            let count = |is: fn(&u8) -> bool| text.bytes().filter(is).count().min(2);
            let is_short = (12..=20).contains(&len) && (alphabet == ALNUM || alphabet == TYPED);
            let kinds =
                [count(u8::is_ascii_digit), count(u8::is_ascii_lowercase), count(u8::is_ascii_uppercase)];
            if !is_short || kinds == [2; 3] {
                return text;
            }
        }
    }

    /// Expands a template, from left to right: text stays, `{x40}` becomes forty characters of the alphabet `x`, `~`
    /// disappears, so that the template itself does not look like a secret.
    pub(super) fn shape(&mut self, shape: &str) -> String {
        let mut made = String::new();
        let mut rest = shape;
        while let Some((text, after)) = rest.split_once('{') {
            made.push_str(&text.replace('~', ""));
            // Not an alphabet: a brace.
            let what = after.split_once('}').filter(|(what, _)| is_alphabet(what));
            let Some((what, after)) = what else {
                made.push('{');
                rest = after;
                continue;
            };
            let (alphabet, len) = what.split_at(1);
            let alphabet = match alphabet {
                "d" => DIGITS,
                "h" => HEX,
                "l" => LOWER,
                "U" => UPPER,
                "3" => BASE32,
                "a" => ALNUM,
                "u" => URL,
                "b" => BASE64,
                "t" => TYPED,
                "j" => DJANGO,
                other => panic!("{other}"),
            };
            made.push_str(&self.of(alphabet, len.parse().unwrap()));
            rest = after;
        }
        made + &rest.replace('~', "")
    }
}

fn is_alphabet(what: &str) -> bool {
    let mut chars = what.chars();
    chars.next().is_some_and(|c| "dhlU3aubtj".contains(c))
        && what.len() > 1
        && chars.all(|c| c.is_ascii_digit())
}

pub(super) const TOKENS: &[&str] = &[
    "AK~IA{316}",
    "AS~IA{316}",
    "AI~za{u35}",
    "GOC~SPX-{u28}",
    "ya~29.{u60}",
    "gh~p_{a36}",
    "gh~o_{a36}",
    "gh~s_{a36}",
    "github_~pat_{a22}_{a59}",
    "gl~pat-{u20}",
    "gl~rt-{u20}",
    "AT~BB{a32}",
    "AT~ATT3xFfGF0{u170}",
    "xo~xb-{d12}-{d13}-{a24}",
    "xo~xp-{d12}-{d12}-{d12}-{h32}",
    "xa~pp-1-{U11}-{d13}-{h64}",
    "https://hooks.slack~.com/services/T{U9}/B{U9}/{a24}",
    "sk_~live_{a24}",
    "rk_~live_{a24}",
    "sk_~test_{a24}",
    "wh~sec_{a32}",
    "sk-~proj-{u120}",
    "sk-{a20}T3Blbk~FJ{a20}",
    "sk-~ant-api03-{u93}AA",
    "hf~_{a34}",
    "gs~k_{a52}",
    "r8~_{a37}",
    "np~m_{a36}",
    "py~pi-AgEIcHlwaS5vcmc{u80}",
    "ci~o{a32}",
    "ruby~gems_{h48}",
    "oy~2{l43}",
    "dc~kr_pat_{u27}",
    "HR~KU-AA{u58}",
    "S~K{h32}",
    "S~G.{u22}.{u43}",
    "ke~y-{h32}",
    "{h32}-us~12",
    "xkey~sib-{h64}-{a16}",
    "do~p_v1_{h64}",
    "shp~at_{h32}",
    "shp~ss_{h32}",
    "sq0~csp-{u43}",
    "sq0~atp-{u22}",
    "{d10}:A~A{u33}",
    "M{a23}.{u6}.{u27}",
    "https://discord~.com/api/webhooks/{d18}/{u68}",
    "da~pi{h32}",
    "lin_~api_{a40}",
    "ntn~_{a46}",
    "secret~_{a43}",
    "fig~d_{u40}",
    "hv~s.{u90}",
    "s~.{a24}",
    "{a14}.atla~sv1.{a67}",
    "gl~c_{a60}",
    "gl~sa_{a32}_{h8}",
    "NR~AK-{U27}",
    "sntr~ys_{a80}",
    "pscale_~tkn_{u43}",
    "sb~p_{h40}",
    "dp~.pt.{a43}",
    "PM~AK-{h24}-{h34}",
    "fo~1_{u43}",
    "nf~p_{a40}",
    "v1~.0-{h24}-{h146}",
    "pu~l-{h40}",
    "tsk~ey-auth-{a12}-{a32}",
    "AGE-~SECRET-KEY-1{358}",
    "ey~JhbGciOiJSUzI1NiJ9.ey~J{a60}.{u86}",
    "lsv2~_pt_{h32}_{h10}",
    "CF~PAT-{u43}",
    "pat{a14}.{h64}",
    "nv~api-{u64}",
];

/// Typical settings that contain a machine-made secret.
pub(super) const SETTINGS: &[(&str, &str)] = &[
    ("config/app.py", "AWS_SECRET_ACCESS_KEY = \"{b40}\"\n"),
    ("settings.py", "SECRET_KEY = 'django-{a50}'\n"),
    ("settings.py", "SECRET_KEY = '{j50}'\n"),
    ("settings.py", "SECRET_KEY = 'django-insecure-{j50}'\n"),
    (".env.shown.txt", "SECRET_KEY='{j50}'\n"),
    ("Db.cs", "var c = new SqlConnection(\"Server=db;User Id=sa;Password={a16};\");\n"),
    ("db.py", "DSN = 'Server=db;Database=x;UID=sa;PWD={a16}'\n"),
    ("notes.md", "Password={a14};User Id=sa;Data Source=db.internal;\n"),
    ("ci.sh", "export AZDO_PAT={l52}\n"),
    ("ci.yml", "  AZURE_DEVOPS_EXT_PAT: {l52}\n"),
    ("ci.py", "AZDO_PAT = \"{l52}\"\n"),
    ("bot.py", "url = 'https://api.telegram.org/bot{d10}:{a35}/sendMessage'\n"),
    (
        "a.txt",
        "https://x.blob.core.windows.net/c/f?sp=r&st=2026-01-01T00:00:00Z&se=2027-01-01T00:00:00Z&spr=https&sv=2022-11-02&sr=b&sig={b43}%3D\n",
    ),
    (
        "a.json",
        "{~\"u\": \"https://x.blob.core.windows.net/c?se=2027-01-01\\u0026sp=r\\u0026sig={a43}%3D\"}\n",
    ),
    ("a.txt", "SharedAccessSignature sr=x.servicebus.windows.net&sig={a43}%3D&se=1700000000&skn=Root\n"),
    ("a.sh", "docker login -u build -p {a16} registry.internal\n"),
    ("a.sh", "docker login registry.internal \\\n  -u build \\\n  -p '{a16}'\n"),
    ("a.sh", "tool connect --password {a16}\n"),
    ("a.py", "run('tool connect --password={a16}')\n"),
    ("a.sh", "tool --password kittens~inpyjamas\n"),
    ("a.sh", "sshpass -p {a16} ssh me@host\n"),
    ("a.sh", "sshpass -p '{a16}' ssh me@host\n"),
    ("a.sh", "mysql -uroot -p{a16} shop\n"),
    ("a.sh", "mysqldump -p{a16} shop\n"),
    ("a.sh", "curl -X POST \\\n  -u me:{a16} https://api.internal\n"),
    ("a.sh", "curl -ume:{a16} https://api.internal\n"),
    ("app.toml", "PASSWORD=\"ilovemycat~fluffy\"\n"),
    ("app.yaml", "db:\n  password: ilovemycat~fluffy\n"),
    ("app.ini", "password = 8462~9173\n"),
    ("app.json", "{~\"password\":\"four old boats and 99 gulls\"}\n"),
    ("app.json", "{~\"password\":\"four words and 99 numbers\"}\n"),
    ("api/secrets.json", "{~\"Smtp:User\": \"me\", \"Smtp:Thing\": \"{a20}\"}\n"),
    ("secrets.json", "{~\"password\": \"four old boats and 99 gulls\"}\n"),
    ("fcm.js", "const KEY = 'AAAA{a7}:APA91b{u134}';\n"),
    ("feed.ino", "#define AIO \"aio~_{a28}\"\n"),
    (
        "wallet.ts",
        "const mnemonic: string = \"legal winner~ thank year wave sausage worth useful purse title yellow lemon\";\n",
    ),
    ("w.yml", "seed_phrase: legal winner~ thank year wave sausage worth useful purse title yellow lemon\n"),
    (".env.test", "DB_URL=postgres~://app:{t16}@db.internal:5432/app\n"),
    (".env.test", "DB_HOST=localhost\nTHING={a32}\n"),
    (
        "sealed.yaml",
        "kind: SealedSecret\nspec:\n  encryptedData:\n    x: AgB\n  template:\n    password: {t16}\n",
    ),
    ("src/config.ts", "export const apiKey: string = \"{a32}\";\n"),
    ("src/main.rs", "const API_TOKEN: &str = \"{a40}\";\n"),
    ("main.go", "\tclient.AuthToken = \"{h40}\"\n"),
    ("App.java", "private static final String CLIENT_SECRET = \"{a36}\";\n"),
    ("config.rb", "config.secret_key_base = '{h128}'\n"),
    ("app.php", "define('DB_PASSWORD', '{t16}');\n"),
    ("app/config.json", "{~\"clientSecret\": \"{a40}\"}\n"),
    ("config.json", "{~\"db\": {~\"user\": \"app\", \"password\": \"{t14}\"}}\n"),
    ("values.yaml", "auth:\n  apiKey: {a32}\n"),
    ("values.yml", "db_password: '{t16}'\n"),
    ("k8s.yaml", "env:\n  - name: API_TOKEN\n    value: {a40}\n"),
    ("Cargo.toml", "[registry]\ntoken = \"{a36}\"\n"),
    ("app.ini", "[db]\npassword = {t16}\n"),
    ("deploy.sh", "export GITHUB_TOKEN={h40}\n"),
    ("deploy.sh", "export DATADOG_API_KEY={h32}\n"),
    ("run.sh", "tool --api-key {a40} --verbose\n"),
    ("web.config", "<add key=\"ApiSecret\" value=\"{a32}\" />\n"),
    ("settings.xml", "<server><password>{t18}</password></server>\n"),
    ("Dockerfile", "FROM alpine\nENV API_SECRET {a32}\n"),
    ("Dockerfile", "FROM alpine\nENV DB_PASSWORD={t16}\n"),
    ("docker-compose.yml", "services:\n  db:\n    environment:\n      - MYSQL_ROOT_PASSWORD={t16}\n"),
    ("docker-compose.yaml", "services:\n  db:\n    environment:\n      POSTGRES_PASSWORD: {t16}\n"),
    ("app.properties", "spring.datasource.password={t16}\n"),
    (".npmrc", "//registry.npmjs.org/:_auth~Token={a36}\n"),
    (".pypirc", "[pypi]\nusername = build\npassword = {t18}\n"),
    ("appsettings.json", "\"Default\": \"Server=db;Database=x;User Id=sa;Password={t16};\"\n"),
    ("azure.txt", "DefaultEndpointsProtocol=https;AccountName=x;Account~Key={b86}==;EndpointSuffix=core\n"),
    ("db.txt", "postgres~://app:{t16}@db.internal:5432/app\n"),
    ("db.txt", "mongodb+srv~://app:{a20}@cluster0.mongodb.net/app\n"),
    ("redis.txt", "redis~://:{a24}@cache:6379/0\n"),
    ("mirror.txt", "https~://build:{a24}@git.internal/x.git\n"),
    ("call.http", "Authorization: Bear~er {u64}\n"),
    ("call.sh", "curl -H 'Authorization: Bas~ic {b40}=' https://api.internal\n"),
    ("call.sh", "curl -u~ build:{a20} https://api.internal\n"),
    ("hook.txt", "machine api.internal login me password {a20}\n"),
    ("tf/main.tf", "  admin_password = \"{t18}\"\n"),
    ("notes.md", "The staging token is below.\n\n    api_token: {a40}\n"),
    ("Test.cs", "var options = new Options {~ ApiKey = \"{a44}\" };\n"),
    ("Info.plist", "<key>ApiSecret</key>\n<string>{a32}</string>\n"),
    ("config.lua", "return {~ secret = \"{a32}\" }\n"),
    ("tests/fixtures.py", "os.environ[\"STRIPE_SECRET\"] = \"{a32}\"\n"),
    ("lib/x.ex", "config :app, App.Endpoint, secret_key_base: \"{b64}\"\n"),
];

pub(super) const NAMES: &[&str] = &[
    ".env",
    ".env.local",
    "api/.env.production",
    "deploy/prod.env",
    "id_rsa",
    "keys/id_ed25519",
    "cert.p12",
    "cert.pfx",
    "app.jks",
    "release.keystore",
    ".netrc",
    ".pgpass",
    ".htpasswd",
    ".git-credentials",
    ".aws/credentials",
    "home/.kube/config",
    "kubeconfig",
    "terraform.tfstate",
    "infra/prod.tfstate",
    "vault.kdbx",
    "key.ppk",
    "config/master.key",
    ".docker/config.json",
    ".bash_history",
    "application_default_credentials.json",
    "gpg/private-keys-v1.d/0A1B2C.key",
];

#[test]
fn no_planted_secret_passes() {
    let mut chance = Chance(1);
    let mut planted = Vec::new();
    for _ in 0..5 {
        for shape in TOKENS {
            let token = chance.shape(shape);
            planted.push((shape, "notes/plan.txt", format!("first\nuse {token} for it\n")));
            planted.push((shape, "src/client.rs", format!("let client = Client::new(\"{token}\");\n")));
            planted.push((shape, "blob.bin", format!("\0\u{1}\0{token}\0")));
        }
        for (path, shape) in SETTINGS {
            planted.push((shape, path, chance.shape(shape)));
        }
    }
    planted.extend(NAMES.iter().map(|name| (name, *name, "something".to_owned())));
    for kind in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
        let (begin, body) = (format!("-----BEGIN {kind}PRIVATE"), chance.of(BASE64, 64));
        planted.push((&"pem", "server.pem", format!("{begin} KEY-----\n{body}\n{body}\n")));
        planted.push((
            &"pem",
            "account.json",
            format!("{{\"private_key\": \"{begin} KEY-----\\n{body}\\n\"}}"),
        ));
        planted.push((&"pem", "src/key.js", format!("const k = '{begin} KEY-----\\n' +\n  '{body}\\n';")));
        planted.push((&"pem", "key.go", format!("var k = `{begin} KEY-----\n{body}\n`")));
        let end = format!("-----END {kind}PRIVATE KEY-----");
        planted.push((&"short pem", "key.pem", format!("{begin} KEY-----\nMIIE\n{end}\n")));
        planted.push((&"short pem", "a.json", format!("{{\"k\": \"{begin} KEY-----\\nMIIE\\n{end}\"}}")));
    }
    let pgp =
        format!("-----BEGIN PGP PRIVATE {}-----\nVersion: X\n\n{}\n", "KEY BLOCK", chance.of(BASE64, 64));
    planted.push((&"pgp", "me.asc", pgp));
    let forms: std::collections::BTreeSet<_> = planted.iter().map(|(form, path, _)| (form, path)).collect();
    assert!(planted.len() > 1000 && forms.len() > 200, "{} in {}", planted.len(), forms.len());
    let passed: Vec<_> = planted
        .iter()
        .filter(|(_, path, text)| screen(path.as_bytes(), text.as_bytes(), None).is_none())
        .map(|(form, path, text)| format!("{form} in {path}: {text}"))
        .collect();
    assert!(passed.is_empty(), "{} of {} passed:\n{}", passed.len(), planted.len(), passed.join("\n"));
}

/// Text that looks like a secret and is none.
pub(super) const HARMLESS: &[(&str, &str)] = &[
    (".env.example", "API_KEY=your-api-key-here\nDB_PASSWORD=changeme\n"),
    ("README.md", "Set `API_TOKEN` to your token: `export API_TOKEN=<token>`.\n"),
    ("README.md", "git clone https://user:password@host/x.git\n"),
    ("ci.yml", "env:\n  TOKEN: ${{ secrets.GITHUB_TOKEN }}\n  key: cache-{h40}\n"),
    ("ci.yml", "- uses: actions/checkout@{h40}\n"),
    ("main.tf", "password = var.db_password\nsecret_name = \"prod/app/db-credentials\"\n"),
    ("a.rs", "let token = tokenizer.next_token(&input)?;\nlet password = read_password(\"Password: \")?;\n"),
    ("a.rs", "fn a_password_of_4096_letters_is_refused() { assert!(check(\"password\").is_err()) }\n"),
    (
        "a.py",
        "api_key = os.environ[\"API_KEY\"]\ntoken = get_token(user_id)\npassword_hash = \"$2b$12${a53}\"\n",
    ),
    (
        "a.ts",
        "const token = await auth.getToken({~ audience: 'https://api.internal/v1' });\ninterface X {~ accessToken: string }\n",
    ),
    ("a.go", "secretKeyRef:\n  name: app-secrets\n  key: db-password\n"),
    ("package-lock.json", "\"integrity\": \"sha512-{b86}==\"\n"),
    ("Cargo.lock", "checksum = \"{h64}\"\n"),
    ("go.sum", "golang.org/x/net v0.1.0 h1:{b43}=\n"),
    ("x.css", ".a {~ background: url(data:image/png;base64,{b400}); color: #a1b2c3 }\n"),
    (
        "x.html",
        "<script integrity=\"sha384-{b64}\" src=\"a.js\"></script><input type=\"password\" name=\"password\">\n",
    ),
    ("id.txt", "550e8400-e29b-41d4-a716-446655440000 {h40} {h64} {h32}\n"),
    ("id_rsa.pub", "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ{b300} me@host\n"),
    ("cert.pem", "-----BEGIN CERTIFICATE-----\nMIID{b60}\n{b64}\n-----END CERTIFICATE-----\n"),
    ("key.pub.pem", "-----BEGIN PUBLIC KEY-----\nMIIB{b60}\n-----END PUBLIC KEY-----\n"),
    (
        "parse.rs",
        "const BEGIN: &str = \"-----BEGIN RSA PRIVATE KEY-----\";\nconst END: &str = \"-----END RSA PRIVATE KEY-----\";\n",
    ),
    ("parse.py", "BEGIN = '-----BEGIN PRIVATE KEY-----'\nEND = '-----END PRIVATE KEY-----'\n"),
    ("pem.md", "Between -----BEGIN PRIVATE KEY----- and -----END PRIVATE KEY----- is base64.\n"),
    ("pem.md", "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----\n"),
    ("app.yml", "spring:\n  datasource:\n    password: ${~DB_PASSWORD:changeme}\n"),
    ("compose.yml", "POSTGRES_PASSWORD: postgres\nDATABASE_URL: postgres://postgres:postgres@db:5432/app\n"),
    (
        "i18n.json",
        "{~\"password\": \"Passwort vergessen?\", \"token_expired\": \"Your token has expired\"}\n",
    ),
    (
        "Doc.md",
        "The password must have 12 characters, such as letters and numbers. Tokens: see `auth.token.ttl=3600`.\n",
    ),
    (
        "model.py",
        "max_tokens = 4096\ntoken_count: 128000\neos_token = \"<|endoftext|>\"\npad_token_id = 50256\n",
    ),
    ("app.rb", "validates :password, length: {~ minimum: 8 }\nhas_secure_token :auth_token\n"),
    (
        "values.yaml",
        "existingSecret: my-release-postgresql\nsecretName: tls-wildcard-cert\npasswordSecretKey: admin-password\n",
    ),
    ("sops.yaml", "password: ENC[AES256_GCM,data:{b24},iv:{b43}=,tag:{b22}==,type:str]\n"),
    (
        "nginx.conf",
        "ssl_certificate_key /etc/ssl/private/server.key;\nproxy_set_header Authorization $http_authorization;\n",
    ),
    (
        "fake.md",
        "Use `gh~p_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` or `sk-~proj-your-key-here-and-nothing-else` or AK~IAIOSFODNN7EXAMPLE.\n",
    ),
    (
        "a.sql",
        "ALTER USER app WITH PASSWORD :'password';\nSELECT token, secret_id FROM tokens WHERE token_hash = $1;\n",
    ),
    ("x.min.js", "var a={~token:\"{a12}\"},b=function(t){~return t.secret};\n"),
    (
        "b.java",
        "String token = request.getHeader(\"X-Auth-Token\");\nprivate final PasswordEncoder passwordEncoder;\n",
    ),
    ("sub.txt", "Subproject commit {h40}\n"),
    ("k.c", "static const char *token_names[] = {~ \"identifier\", \"string-literal\", \"end-of-file\" };\n"),
    ("x.snap", "snapshot {h64} of 2026-11-21T15:13:27Z at /work/area/part-{d4}\n"),
    ("Makefile", "deploy:\n\tTOKEN=$(shell cat token.txt) ./deploy.sh --token $$TOKEN\n"),
    (
        "t.json",
        "{~\"access_token_url\": \"https://login.internal/oauth2/token\", \"token_endpoint\": \"/oauth2/v2.0/token\", \"token_type\": \"bearer\"}\n",
    ),
    (
        "cli.md",
        "tool --password PASSWORD --password=<password> --password $PASSWORD --password-stdin --password=\"${PW}\"\n",
    ),
    (
        "login.sh",
        "docker login -u \"$USER\" -p \"$TOKEN\"\nmysql -u root -p shop_2024_backup\nmysql -p$PW x\nsshpass -p \"$PW\" ssh h\ncurl -u \"$USER:$PASS\" https://x\ncurl -u user:password https://x\nmkdir -p build/output2/dir4\n",
    ),
    ("date.py", "date_pat = \"%Y-%m-%d(?:T%H)?\"\nname_pat = re.compile(\"[a-z]+_[0-9]+-x1y2z3w4\")\n"),
    (
        "con.cs",
        "var c = $\"Server={~host};User Id={~user};Password={~password};\";\nvar d = \"Server=x;User Id=sa;Password=<password>;\";\n",
    ),
    ("tg.md", "https://api.telegram.org/bot<token>/getMe and https://x/?sig=short&se=1\n"),
    (
        "app.json",
        "{~\"password\": \"Password\", \"a\": {~\"password\": \"Kennwort eingeben bis 20 Zeichen:\"}, \"db\": {~\"password\": \"must have at least 8 characters\"}}\n",
    ),
    (
        "app.yaml",
        "password: string\nconfirmPassword: bestaetigungen\npassword: 12345678\npassword: \"\"\npassword: null\n",
    ),
    ("i18n/app.json", "{~\"password\": \"motdepassesecret\", \"login.password\": \"zugangskennwort\"}\n"),
    ("a.py", "password = getpass()\npassword: string\npassword = make_password(12345670)\n"),
    (
        "secrets.json",
        "{~\"Api:Key\": \"\", \"Db:Password\": \"<set me>\", \"x\": \"your-key-here\", \"y\": \"${~KEY_OF_IT}\"}\n",
    ),
    (
        "hardhat.js",
        "const mnemonic = \"test test test test test test test test test test test junk\";\n// mnemonic: the short words that an assembler knows for each of its many instructions in code\n",
    ),
    (
        ".env.test",
        "# For tests only.\nNODE_ENV=test\nDATABASE_URL=postgres://postgres:postgres@localhost:5432/app_test\nREDIS_URL=\"redis://localhost:6379\"\nJWT_SECRET=test-secret-for-tests\nPORT=8080\n",
    ),
    (
        "sealed.yaml",
        "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nspec:\n  encryptedData:\n    user: AgA{b60}\n    db-password: AgB{b200}\n    apiKey: AgC{b60}=\n  template:\n    type: Opaque\n",
    ),
    (
        "enum.rs",
        "enum Token {~ Plus, Minus, Secret }\nmatch token {~ Token::Plus => \"plus-sign-operator-token\", _ => \"\" }\n",
    ),
];

#[test]
fn of_a_thousand_harmless_files_none_is_refused() {
    let mut chance = Chance(78);
    let mut refused = Vec::new();
    for round in 0..25 {
        for (path, shape) in HARMLESS {
            let text = chance.shape(shape);
            if let Some(found) = screen(path.as_bytes(), text.as_bytes(), None) {
                refused.push(format!("{round} {path}: {found:?}\n{text}"));
            }
        }
    }
    assert!(refused.is_empty(), "{} refused:\n{}", refused.len(), refused.join("\n"));
}

#[test]
fn a_secret_of_the_older_version_is_not_new() {
    let mut chance = Chance(3);
    let (old, new) = (chance.shape("gh~p_{a36}"), chance.shape("gh~p_{a36}"));
    let base = format!("token: {old}\n");
    let both = format!("more\ntoken: {old}\nother: {new}\n");
    assert_eq!(screen(b"x.yml", base.as_bytes(), Some(base.as_bytes())), None);
    let found = screen(b"x.yml", both.as_bytes(), Some(base.as_bytes())).unwrap();
    assert_eq!((found.what, found.line), ("a GitHub token", Some(3)));
    assert_eq!(screen(b".env", b"A=1", Some(b"A=2")), None, "its name was no reason then");
}

#[test]
fn utf_16_is_read_too() {
    let token = Chance(4).shape("gh~p_{a36}");
    let wide: Vec<u8> = [0xff, 0xfe].into_iter().chain(token.bytes().flat_map(|byte| [byte, 0])).collect();
    assert!(screen(b"x.ps1", &wide, None).is_some());
    assert!(screen(b"x.ps1", &wide[2..], None).is_some(), "without a mark");
}

#[test]
fn every_shape_is_a_regular_expression() {
    assert_eq!(scan::faulty_rules(), Vec::<&str>::new());
}
