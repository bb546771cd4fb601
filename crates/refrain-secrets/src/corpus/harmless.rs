//! The harmless files: they look like secrets and are none.

use super::super::tests::{Chance, HARMLESS};
use super::{Sample, fill};

const ROUNDS: usize = 12;

const FILES: &[(&str, &str)] = &[
    // Machine-made names and numbers.
    ("ids.json", "[{~\"id\": \"<uuid>\", \"parent\": \"<uuid>\"}, {~\"id\": \"<uuid>\"}]\n"),
    ("page.html.snap", "exports[`<w>`] = `<div data-token=\"<uuid>\" data-id=\"<uuid>\"><w></div>`;\n"),
    ("__snapshots__/x.snap", "Object {~\n  \"token\": \"<uuid>\",\n  \"id\": {d6},\n}\n"),
    ("trace.log", "2026-01-01T00:00:0{d1}Z INFO <w> trace_id={h32} span_id={h16} request=<uuid>\n"),
    ("access.log", "10.0.0.{d2} - - \"GET /<w>/{h24}?page={d2} HTTP/1.1\" 200 {d4} \"-\" \"<w>/1.{d1}\"\n"),
    ("SHA256SUMS", "{h64}  <w>-{d1}.{d2}.tar.gz\n{h64}  <w>.zip\n"),
    ("md5.txt", "{h32} *<w>.iso\n"),
    ("etag.http", "HTTP/1.1 200 OK\nETag: \"{h32}\"\nX-Request-Id: <uuid>\n"),
    ("commits.txt", "{h40} <w> <w>\n{h40} Merge {h7} into <w>\n"),
    ("ci.yml", "steps:\n  - uses: <w>/<w>@{h40}\n  - run: echo ${~{ github.sha }}\n"),
    ("image.yaml", "image: registry.internal/<w>@sha256:{h64}\nimagePullSecrets:\n  - name: <w>-pull\n"),
    ("bom.json", "{~\"hashes\": [{~\"alg\": \"SHA-512\", \"content\": \"{h128}\"}]}\n"),
    ("build.ninja", "build <w>.o: cc <w>.c | {h16}\n"),
    // Lock files.
    (
        "package-lock.json",
        "{~\"packages\": {~\"node_modules/<w>\": {~\"version\": \"1.{d1}.0\", \"integrity\": \"sha512-{b86}==\"}}}\n",
    ),
    ("yarn.lock", "<w>-token@^1.0.0:\n  version \"1.0.{d1}\"\n  integrity sha512-{b86}==\n"),
    ("pnpm-lock.yaml", "packages:\n  /<w>@1.0.{d1}:\n    resolution: {~integrity: sha512-{b86}==}\n"),
    ("Cargo.lock", "[[package]]\nname = \"secret-<w>\"\nversion = \"0.{d1}.0\"\nchecksum = \"{h64}\"\n"),
    ("poetry.lock", "files = [\n    {~file = \"<w>-1.0.tar.gz\", hash = \"sha256:{h64}\"},\n]\n"),
    ("go.sum", "example.org/<w> v1.{d1}.0/go.mod h1:{b43}=\n"),
    ("composer.lock", "{~\"content-hash\": \"{h32}\", \"reference\": \"{h40}\"}\n"),
    ("Gemfile.lock", "GEM\n  specs:\n    jwt-<w> (2.{d1}.0)\nCHECKSUMS\n  <w> (1.0) sha256={h64}\n"),
    ("flake.lock", "{~\"narHash\": \"sha256-{b43}=\", \"rev\": \"{h40}\"}\n"),
    ("requirements.txt", "<w>==1.{d1} \\\n    --hash=sha256:{h64} \\\n    --hash=sha256:{h64}\n"),
    // Examples to be copied.
    (
        ".env.example",
        "API_KEY=\nSECRET_KEY=change-me-{d4}\nTOKEN=<your token>\nDATABASE_URL=postgres://user:password@localhost/<w>\n",
    ),
    (
        "README.md",
        "Export `AWS_ACCESS_KEY_ID=AK~IAIOSFODNN7EXAMPLE` and `AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY`.\n",
    ),
    (
        "docs/setup.md",
        "export GITHUB_TOKEN=gh~p_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\ncurl -H \"Authorization: Bear~er $TOKEN\" https://api.internal\n",
    ),
    (
        "docs/api.md",
        "`?token=YOUR_TOKEN`, `?api_key=<api-key>`, `?password={~password}`; the token is <w>-<w>.\n",
    ),
    (
        "config.sample.yml",
        "password: your-<w>-password\napi_key: your_api_key_here\nsecret: <w>-example-secret\n",
    ),
    ("values.yaml", "auth:\n  password: \"\"\n  existingSecret: <w>-credentials\n  secretKey: password\n"),
    (
        "secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: <w>\ntype: Opaque\nstringData:\n  password: {~{ .Values.password | quote }}\n  user: <w>\n",
    ),
    (
        "ca.yaml",
        "kind: Secret\ndata:\n  tls.crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t{b600}\n  user: YWRtaW4=\n",
    ),
    (
        "external.yaml",
        "kind: ExternalSecret\nspec:\n  data:\n    - secretKey: <w>-password\n      remoteRef:\n        key: prod/<w>/<w>\n",
    ),
    (
        "deploy.yaml",
        "env:\n  - name: DB_PASSWORD\n    valueFrom:\n      secretKeyRef:\n        name: <w>-db\n        key: password\n",
    ),
    // Code about secrets.
    (
        "auth.ts",
        "const token = localStorage.getItem('access_token');\nif (!token) throw new Error('missing-token-in-<w>');\n",
    ),
    (
        "auth.py",
        "def check(password: str, *, secret: str = settings.SECRET_KEY) -> bool:\n    return hmac.compare_digest(password, secret)\n",
    ),
    ("user.rb", "has_secure_password\nvalidates :api_token, uniqueness: true, length: {~ is: {d2} }\n"),
    (
        "Login.java",
        "@Value(\"${~app.<w>.password}\") private String password;\nString key = props.getProperty(\"<w>.secret.key\");\n",
    ),
    (
        "lexer.rs",
        "let token = Token::new(TokenKind::StringLiteral, \"<w>-<w>\".to_owned());\nlet key = format!(\"{~}-{~}\", a, b);\n",
    ),
    (
        "client.go",
        "token := os.Getenv(\"<w>_TOKEN\")\nreq.Header.Set(\"Authorization\", \"Bear~er \"+token)\n",
    ),
    ("test_login.py", "client.post('/login', data={~'username': 'test', 'password': 'password123'})\n"),
    ("spec/login.js", "cy.get('[data-token=\"<w>\"]').type('secret');\ncy.login('<w>', 'wrong-password');\n"),
    (
        "form.html",
        "<label for=\"password\">Password</label><input id=\"password\" type=\"password\" autocomplete=\"current-password\">\n",
    ),
    ("csrf.html", "<meta name=\"csrf-token\" content=\"{b86}==\">\n"),
    (
        "openapi.yaml",
        "components:\n  securitySchemes:\n    api_key:\n      type: apiKey\n      name: X-API-Key\n      in: header\n",
    ),
    ("schema.graphql", "type Login {~ accessToken: String! refreshToken: String! expiresIn: Int }\n"),
    ("x.proto", "message Login {~ string password = 1; bytes token = 2; }\n"),
    (
        "main.tf",
        "resource \"random_password\" \"<w>\" {~\n  length = {d2}\n}\noutput \"password\" {~ value = random_password.<w>.result }\n",
    ),
    (
        "role.sql",
        "ALTER USER app WITH PASSWORD :'password';\nCREATE USER app IDENTIFIED BY '<password>';\nSET PASSWORD = '${~PASSWORD}';\n",
    ),
    (
        "login.ps1",
        "$p = ConvertTo-SecureString $env:PASSWORD -AsPlainText -Force\n$q = ConvertTo-SecureString \"$Password\" -AsPlainText -Force\n",
    ),
    (
        "Makefile",
        "push:\n\tdocker login -u $(USER) -p $(TOKEN)\n\tcurl -u \"$$USER:$$PASSWORD\" https://<w>.internal\n",
    ),
    ("nginx.conf", "auth_basic_user_file /etc/nginx/<w>.htpasswd;\nproxy_set_header X-Auth $http_x_auth;\n"),
    (
        "joined.py",
        "MESSAGE = (\n    \"the password of <w> \"\n    \"is not set\"\n)\nX = \"<w>\" + \"-\" + \"<w>\"\n",
    ),
    ("joined.c", "printf(\"token \" \"%s\" \" secret \" \"%d\\n\", \"<w>\" \"<w>\", {d3});\n"),
    ("joined.sh", "cmake -DTOKEN_PATH=/etc/<w> \\\n  -DKEY=<w> \\\n  --password-file \"$HOME\"/\"<w>\"\n"),
    // Translations.
    (
        "i18n/de.json",
        "{~\"apiKey\": \"API-Schlüssel\", \"password\": \"Passwort\", \"secret\": \"Geheimschlüssel-für-<w>\"}\n",
    ),
    (
        "locales/fr.yml",
        "fr:\n  token: Jeton-d’accès-périmé\n  password: \"Mot de passe oublié ?\"\n  secret_key: Clé-secrète\n",
    ),
    (
        "lang/ja.json",
        "{~\"password\": \"パスワードを入力してください\", \"accessToken\": \"アクセストークン\", \"clientSecret\": \"シークレット\"}\n",
    ),
    ("app/ru.properties", "password=Пароль-пользователя\napi.key=Ключ-доступа-к-<w>\n"),
    (
        "messages.json",
        "{~\"apiKey\": \"Clé-d’API-à-créer\", \"authToken\": \"Zugriffsschlüsselverwaltung-für-Gäste\"}\n",
    ),
    (
        "pages/settings.json",
        "{~\"title\": \"Settings\", \"apiKey\": \"Schlüssel-der-Schnittstelle\", \"token\": \"Gültigkeitsschlüssel\"}\n",
    ),
    ("words.txt", "<w>\n<w>\n<w>\nsecret\npassword\ntoken\n<w>\n"),
    (
        "wordlist.txt",
        "abandon ability able about above absent absorb abstract absurd abuse access accident account\n",
    ),
    (
        "prose.md",
        "The password is required. Your token was revoked by <w>. The secret of <w>: patience. Password is case-sensitive.\n",
    ),
    (
        "CHANGELOG.md",
        "- Fix token refresh for <w> (#{d4}), by @<w> in {h7}\n- Passwords: at least 12 characters\n",
    ),
    // Public or sealed data.
    ("ca.pem", "-----BEGIN CERTIFICATE-----\nMIID{b60}\n{b64}\n{b64}\n{b20}==\n-----END CERTIFICATE-----\n"),
    (
        "public.pem",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A{b32}\n{b64}\n-----END PUBLIC KEY-----\n",
    ),
    (
        "keys.asc",
        "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQIN{b60}\n{b64}\n=abcd\n-----END PGP PUBLIC KEY BLOCK-----\n",
    ),
    ("a.sig", "-----BEGIN PGP SIGNATURE-----\n\niQIz{b60}\n{b64}\n-----END PGP SIGNATURE-----\n"),
    (
        "authorized_keys",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43} <w>@<w>\nssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ{b340} <w>\n",
    ),
    ("known_hosts", "|1|{b27}=|{b27}= ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43}\n"),
    ("vault.yml", "$ANSIBLE_VAULT;1.1;AES256\n{h80}\n{h80}\n{h80}\n{h20}\n"),
    ("group_vars/all.yml", "db_password: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  {h80}\n  {h80}\n"),
    (
        "secrets.enc.yaml",
        "password: ENC[AES256_GCM,data:{b24},iv:{b43}=,tag:{b22}==,type:str]\nsops:\n  mac: ENC[AES256_GCM,data:{b120},iv:{b43}=,tag:{b22}==,type:str]\n",
    ),
    (
        "secrets.age",
        "-----BEGIN AGE ENCRYPTED FILE-----\nYWdlLWVuY3J5cHRpb24ub3Jn{b40}\n{b64}\n-----END AGE ENCRYPTED FILE-----\n",
    ),
    (
        "sealed.yaml",
        "kind: SealedSecret\nspec:\n  encryptedData:\n    password: AgB{b300}\n    token: AgA{b200}==\n",
    ),
    (
        "jwks.json",
        "{~\"keys\": [{~\"kty\": \"RSA\", \"kid\": \"{h32}\", \"use\": \"sig\", \"n\": \"{u342}\", \"e\": \"AQAB\"}]}\n",
    ),
    ("hashes.txt", "me:$2b$12${a53}\nyou:$argon2id$v=19$m=65536,t=3,p=4${b22}${b43}\n"),
    ("analytics.js", "stripe('pk_live_{a24}'); sentry('https://{h32}@o{d5}.ingest.internal/{d6}');\n"),
    // Images, minified code, and other machine-made text.
    ("icon.svg", "<svg><path d=\"M{d2}.{d2}c{d1}.{d2}-{d1}.{d2},{d1}.{d2} {d2}z\" id=\"{a8}\"/></svg>\n"),
    ("style.css", ".<w>-token {~ background: url(data:font/woff2;base64,d09GMgAB{b900}) }\n"),
    ("page.html", "<img src=\"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA{b2000}\">\n"),
    ("index.html", "<script src=\"a.js\" integrity=\"sha384-{b64}\" crossorigin=\"anonymous\"></script>\n"),
    (
        "a.ipynb",
        "{~\"cells\": [{~\"id\": \"{h8}\", \"outputs\": [{~\"data\": {~\"image/png\": \"iVBORw0KGgo{b1500}\\n\"}}]}]}\n",
    ),
    (
        "app.min.js",
        "!function(e,t){~var n={~token:\"<w>\",key:function(e){~return e.secret}},r=\"{a6}\",o=e[\"{h20}\"]}(window);\n",
    ),
    (
        "chunk.{h8}.js",
        "(self.webpackChunk=self.webpackChunk||[]).push([[{d3}],{~{d4}:e=>{~e.exports=\"{h20}.woff2\"}}]);\n",
    ),
    (
        "app.js.map",
        "{~\"version\":3,\"sources\":[\"<w>.ts\"],\"names\":[\"token\",\"secret\"],\"mappings\":\"AAAA,SAASA,{a4},CAAC,{a5},GAAG,{a5},IAAI\"}\n",
    ),
    (
        "vocab.json",
        "{~\"<w>\": {d4}, \"Ġtoken\": {d5}, \"Ġsecret\": {d5}, \"ĠPassword\": {d5}, \"</s>\": 2}\n",
    ),
    ("data.csv", "id,hash,amount\n{d8},{h40},{d3}.{d2}\n{d8},{h40},{d3}.{d2}\n"),
    ("vectors.txt", "COUNT = {d1}\nKEY = {h32}\nIV = {h24}\nPT = {h64}\nCT = {h64}\n"),
    ("tests/vectors.json", "{~\"input\": \"{h128}\", \"digest\": \"{h64}\", \"salt\": \"{h16}\"}\n"),
    (
        "a.patch",
        "diff --git a/<w>.c b/<w>.c\nindex {h10}..{h10} 100644\n-token = next();\n+token = peek();\n",
    ),
    (
        "coverage.xml",
        "<line number=\"{d3}\" hits=\"{d2}\"/><class name=\"Token<w>\" filename=\"<w>/token.py\"/>\n",
    ),
    (
        "project.pbxproj",
        "\t\t{U24} /* Token.swift in Sources */ = {~isa = PBXBuildFile; fileRef = {U24} /* Token.swift */; };\n",
    ),
    (
        "App.sln",
        "Project(\"{~FAE04EC0-301F-11D3-BF4B-00C04F79EFBC}\") = \"<w>\", \"<w>.csproj\", \"{~<uuid>}\"\n",
    ),
    (
        "chat.json",
        "{~\"model\": \"<w>-4\", \"max_tokens\": {d4}, \"usage\": {~\"total_tokens\": {d3}, \"token_type\": \"<w>\"}}\n",
    ),
    ("page.json", "{~\"next_page_token\": \"{u40}\", \"cursor\": \"{b40}==\", \"sync_token\": \"{a32}\"}\n"),
    ("addresses.txt", "0x{h40} 0x{h64} bc1q{l38}\n"),
    (
        "kernel.config",
        "CONFIG_SYSTEM_TRUSTED_KEYS=\"certs/<w>.pem\"\nCONFIG_MODULE_SIG_KEY=\"certs/signing_key.pem\"\n",
    ),
    ("a.bib", "@article{~<w>{d4}, doi = {~10.{d4}/{a8}}, author = {~<w> and <w>}}\n"),
];

pub(super) fn harmless(chance: &mut Chance) -> Vec<Sample> {
    let mut samples = Vec::new();
    for _ in 0..ROUNDS {
        for (path, template) in FILES {
            let path = fill(chance, path);
            samples.push(Sample::new("file", path, fill(chance, template)));
        }
    }
    for (path, template) in HARMLESS {
        samples.push(Sample::new("file", *path, chance.shape(template)));
    }
    for len in [64, 4000, 60_000] {
        for path in ["a.bin", "photo.jpg", "model.onnx", "a.gz"] {
            let bytes: Vec<u8> = (0..len).map(|_| u8::try_from(chance.next(256)).unwrap()).collect();
            samples.push(Sample::new("bytes", path, bytes));
        }
    }
    // 16-bit numbers, and UTF-16 text.
    let wide: Vec<u8> = (0..4000).flat_map(|_| [u8::try_from(chance.next(256)).unwrap(), 0]).collect();
    samples.push(Sample::new("numbers", "a.wav", wide));
    let text = fill(chance, "Windows Registry Editor\r\n[HKEY\\<w>]\r\n\"Token\"=\"<w>\"\r\n");
    samples.push(Sample::new("wide", "a.reg", text.bytes().flat_map(|b| [b, 0]).collect::<Vec<_>>()));
    samples
}
