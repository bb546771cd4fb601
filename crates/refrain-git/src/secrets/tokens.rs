//! Tokens whose shape their vendors have given away, keys with a header, and logins in addresses. A flat table, one line a
//! shape: what it is, how a placeholder is told, what stands in every text of that shape (one pass looks for all of these,
//! and only around them anything else is looked for), and the shape. What is in its group is what chance made.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::bytes::{Regex, RegexBuilder};

use super::Hit;
use super::judge;

/// How it is told that a text of this shape is no placeholder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    /// A machine made it.
    Token,
    /// A machine made it, and it has digits: its shape alone may be that of a name.
    Digits,
    /// A person may have made it.
    Password,
    /// The shape says all.
    None,
}
use Check::{Digits, None as Sure, Password, Token};

const SHAPES: &[(&str, Check, &str, &str)] = &[
    // Keys with a header. A header alone is what a program looks for.
    (
        "a private key",
        Sure,
        "-----BEGIN",
        r#"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----(?:\\[nr]|[\s"'+,\\>|])*(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset):[^\n\\]{0,120}(?:\\[nr]|[\s"'+,\\])+)*(?:\\[nr]|[\s"'+,\\])*([A-Za-z0-9+/=]{30})"#,
    ),
    (
        "a private key",
        Sure,
        "LS0tLS1CRUdJTi",
        r"LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJVkFUR|BFQyBQUklWQVRF|BPUEVOU1NIIFBSSVZBVEUg|BFTkNSWVBURUQgUFJJVkFURS|BQR1AgUFJJVkFURS|BEU0EgUFJJVkFURS)[A-Za-z0-9+/]{40}",
    ),
    (
        "a private key",
        Sure,
        "PuTTY-User-Key-File-",
        r"PuTTY-User-Key-File-[23]:[\s\S]{0,4000}Private-Lines: \d",
    ),
    ("a private key", Token, "AGE-SECRET-KEY-", r"\bAGE-SECRET-KEY-(?:PQ-)?1([0-9A-Z]{50,})"),
    ("a private key", Token, "PrivateKey", r"(?i)\bPrivateKey\s*=\s*([A-Za-z0-9+/]{43}=)"),
    (
        "a private key",
        Sure,
        "untrusted",
        r"untrusted comment: [a-z]+ encrypted secret key\s+[A-Za-z0-9+/]{60}",
    ),
    (
        "a private key",
        Token,
        "\"kty\"",
        r#""d"\s*:\s*"([A-Za-z0-9_-]{40,})"[\s\S]{0,3000}"kty"|"kty"[\s\S]{0,3000}"d"\s*:\s*"[A-Za-z0-9_-]{40,}""#,
    ),
    ("a private key", Token, "client-key-data:", r"\bclient-key-data:\s*([A-Za-z0-9+/]{60})"),
    // Clouds.
    ("an AWS access key", Token, "AKIA ASIA ABIA ACCA", r"\b(?:AKIA|ASIA|ABIA|ACCA)([A-Z2-7]{16})\b"),
    ("an AWS key", Token, "ABSK", r"(?:^|[^A-Za-z0-9+/=_-])ABSK([A-Za-z0-9+/]{100,}={0,2})"),
    ("a Google API key", Token, "AIza", r"(?:^|[^A-Za-z0-9+/=_-])AIza([0-9A-Za-z_-]{35})"),
    ("a Google client secret", Token, "GOCSPX-", r"\bGOCSPX-([0-9A-Za-z_-]{24,})"),
    ("a Google access token", Token, "ya29.", r"\bya29\.([0-9A-Za-z_.-]{20,})"),
    ("a Google refresh token", Digits, "1//0", r"\b1//0([0-9A-Za-z_-]{38,})"),
    (
        "an Azure key",
        Token,
        "AccountKey= AccessKey=",
        r"(?i)\b(?:Account|SharedAccess|Access)Key=([A-Za-z0-9+/]{40,}={0,2})",
    ),
    (
        "an Azure client secret",
        Token,
        "Q~",
        r"(?:^|[^A-Za-z0-9_~.-])([A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})",
    ),
    (
        "an Azure signature",
        Token,
        "&sig= ?sig=",
        r"[?&]sv=20\d\d-[^\s]{0,300}&sig=([A-Za-z0-9%+/]{40,})|[?&]sig=[A-Za-z0-9%+/]{40,}[^\s]{0,300}&sv=20\d\d-",
    ),
    (
        "an Azure key",
        Digits,
        "AzFu AzSe ACDb AIoT +ASt +ABa +AMC +AEh +ARm +ACR AzCa APIM JQQJ99",
        r"\b([A-Za-z0-9+/]{30,80}(?:AzFu|AzSe[A-D]|ACDb|AIoT|\+ASt|\+ABa|\+AMC|\+AEh|\+ARm|\+ACR|AzCa|APIM|JQQJ99)[A-Za-z0-9+/]{4,44}={0,2})",
    ),
    ("an Azure DevOps token", Token, "AZDO", r"\b([A-Za-z0-9]{70,80}AZDO[A-Za-z0-9]{4})\b"),
    ("an Alibaba access key", Digits, "LTAI", r"(?:^|[^A-Za-z0-9+/=_-])LTAI([A-Za-z0-9]{12,22})\b"),
    ("a Tencent secret id", Digits, "AKID", r"(?:^|[^A-Za-z0-9+/=_-])AKID([A-Za-z0-9]{32})\b"),
    ("a Yandex token", Token, "y0_ t1. AQVN", r"\b(?:y0_|t1\.|AQVN)([A-Za-z0-9_-]{35,})"),
    ("a DigitalOcean token", Token, "doo_v1_ dop_v1_ dor_v1_ dot_v1_", r"\bdo[oprt]_v1_([0-9a-f]{64})"),
    ("a Heroku key", Digits, "HRKU-", r"\bHRKU-([A-Za-z0-9_-]{30,})"),
    (
        "a Heroku key",
        Token,
        "heroku",
        r"(?i)heroku[a-z0-9_ .\-]{0,30}['\x22]?\s{0,3}[:=]\s{0,3}['\x22]?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})",
    ),
    ("a Cloudflare key", Token, "v1.0-", r"\bv1\.0-([0-9a-f]{24}-[0-9a-f]{100,})"),
    ("a Cloudflare token", Digits, "cfut_ cfk_ cfat_", r"\bcf(?:ut|k|at)_([A-Za-z0-9_-]{36,})"),
    ("a Fly token", Token, "fm1 fm2", r"\b(?:FlyV1 )?fm[12][ar]?_([A-Za-z0-9+/=_-]{40,})"),
    ("a Fly token", Digits, "fo1_", r"\bfo1_([A-Za-z0-9_-]{40,})"),
    ("a Netlify token", Digits, "nfp_ nfc_ nfo_ nfu_ nfb_", r"\bnf[pcoub]_([A-Za-z0-9_-]{36,})"),
    (
        "a Vercel token",
        Digits,
        "vercel_blob_rw_ vcp_ vck_ vci_ vcr_ vca_ vcc_",
        r"\b(?:vercel_blob_rw_|vc[pkirac]_)([A-Za-z0-9_]{24,})",
    ),
    ("a Render key", Digits, "rnd_", r"\brnd_([A-Za-z0-9]{26,})"),
    ("a Scaleway key", Digits, "SCW", r"(?:^|[^A-Za-z0-9+/=_-])SCW([A-Z0-9]{17})\b"),
    (
        "a Linode or Hetzner token",
        Token,
        "linode hcloud hetzner",
        r"(?i)\b(?:linode|hcloud|hetzner)[a-z_]{0,20}token['\x22]?\s{0,3}[:=]\s{0,3}['\x22]?([A-Za-z0-9]{64})\b",
    ),
    ("a Pulumi token", Token, "pul-", r"\bpul-([0-9a-f]{40})\b"),
    ("a Terraform token", Token, ".atlasv1.", r"\b([A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,})"),
    ("a Vault token", Token, "hvs. hvb. hvr.", r"\bhv[sbr]\.([A-Za-z0-9_-]{24,})"),
    ("a Vault token", Digits, "s. b.", r"\b[sb]\.([A-Za-z0-9]{24})\b"),
    (
        "a Doppler token",
        Token,
        "dp.",
        r"\bdp\.(?:pt|st|ct|sa|said|scim|audit)\.((?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44})",
    ),
    ("an Infisical token", Token, "st.", r"\bst\.([0-9a-f]{24}\.[0-9a-f]{32}\.[0-9a-f]{32})"),
    ("a 1Password token", Token, "ops_", r"\bops_(eyJ[A-Za-z0-9+/=_-]{80,})"),
    (
        "a 1Password key",
        Digits,
        "A3-",
        r"\bA3-([A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5})\b",
    ),
    ("a Tailscale key", Token, "tskey-", r"\btskey-(?:[a-z]+-)?([A-Za-z0-9]{6,}-[A-Za-z0-9]{20,})"),
    // Code and packages.
    ("a GitHub token", Token, "ghp_ gho_ ghu_ ghs_ ghr_", r"\bgh[pousr]_([A-Za-z0-9]{36,255})"),
    ("a GitHub token", Token, "github_pat_", r"\bgithub_pat_([A-Za-z0-9_]{40,255})"),
    (
        "a GitLab token",
        Token,
        "glpat- glptt- glrt- glrtr- gldt- glft- glsoat- glcbt- glimt- glagent- gloas- glffct- glwt-",
        r"\bgl(?:pat|ptt|rt|rtr|dt|ft|soat|cbt|imt|agent|oas|ffct|wt)-([0-9A-Za-z_.-]{20,})",
    ),
    (
        "a GitLab token",
        Token,
        "GR1348941 _gitlab_session=",
        r"\b(?:GR1348941|_gitlab_session=)([A-Za-z0-9_-]{20,})",
    ),
    ("a Bitbucket token", Token, "ATBB", r"(?:^|[^A-Za-z0-9+/=_-])ATBB([A-Za-z0-9_=.-]{24,})"),
    ("an Atlassian token", Token, "ATATT ATCTT ATOA", r"\bAT(?:ATT|CTT|OA)3?x?([A-Za-z0-9_=.-]{60,})"),
    (
        "a Gitea token",
        Token,
        "gitea forgejo gogs",
        r"(?i)\b(?:gitea|forgejo|gogs)[a-z_]{0,20}token['\x22]?\s{0,3}[:=]\s{0,3}['\x22]?([0-9a-f]{40})\b",
    ),
    ("an npm token", Token, "npm_", r"\bnpm_([A-Za-z0-9]{36})"),
    (
        "a registry's login",
        Token,
        "_auth",
        r"(?:^|[\s:/])_auth(?:Token)?\s*=\s*['\x22]?([A-Za-z0-9+/_.=-]{20,})",
    ),
    (
        "a registry's login",
        Token,
        "auth\" identitytoken registrytoken",
        r"\x22(?:auth|identitytoken|registrytoken)\x22\s*:\s*\x22([A-Za-z0-9+/_.-]{16,}={0,2})\x22",
    ),
    ("a PyPI token", Token, "pypi-", r"\bpypi-([A-Za-z0-9_-]{50,})"),
    ("a crates.io token", Digits, "cio", r"(?:^|[^A-Za-z0-9+/=_-])cio([A-Za-z0-9]{32})\b"),
    ("a RubyGems key", Token, "rubygems_", r"\brubygems_([0-9a-f]{48})"),
    ("a NuGet key", Digits, "oy2", r"(?:^|[^A-Za-z0-9+/=_-])oy2([a-z0-9]{43})\b"),
    ("a Docker token", Token, "dckr_", r"\bdckr_(?:pat|oat)_([A-Za-z0-9_-]{20,})"),
    (
        "an Artifactory key",
        Digits,
        "AKCp cmVmdGtuO",
        r"(?:^|[^A-Za-z0-9+/=_-])(?:AKCp|cmVmdGtuO)([A-Za-z0-9]{50,})",
    ),
    ("a Clojars token", Digits, "CLOJARS_", r"\bCLOJARS_([a-z0-9]{60})"),
    ("a CircleCI token", Digits, "CCIPAT_ CCIPRJ_", r"\bCCI(?:PAT|PRJ)_([A-Za-z0-9]{22}_[0-9a-f]{40})"),
    ("a Buildkite token", Token, "bkua_ bkat_ bkct_ bkpt_", r"\bbk(?:ua|at|ct|pt)_([A-Za-z0-9]{40,})"),
    ("a Sourcegraph token", Token, "sgp_ sgd_", r"\bsg[pd]_((?:[0-9A-Za-z]{16}_)?[0-9A-Fa-f]{40})"),
    ("a SonarQube token", Token, "sqa_ sqp_ squ_", r"\bsq[apu]_([0-9a-f]{40})"),
    (
        "a Snyk token",
        Token,
        "snyk",
        r"(?i)\bsnyk[a-z_]{0,20}token['\x22]?\s{0,3}[:=]\s{0,3}['\x22]?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})",
    ),
    (
        "a Codecov token",
        Token,
        "codecov",
        r"(?i)\bcodecov[a-z_]{0,20}token['\x22]?\s{0,3}[:=]\s{0,3}['\x22]?([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})",
    ),
    ("a Postman key", Token, "PMAK-", r"\bPMAK-([0-9a-f]{24}-[0-9a-f]{34})"),
    ("a Prefect key", Digits, "pnu_ pnb_", r"\bpn[ub]_([A-Za-z0-9]{36})"),
    // Models.
    ("an Anthropic key", Token, "sk-ant-", r"\bsk-ant-([A-Za-z0-9]+-[A-Za-z0-9_-]{20,})"),
    (
        "an OpenAI key",
        Token,
        "sk-proj- sk-svcacct- sk-service- sk-admin- sk-None- sk-or-v1-",
        r"\bsk-(?:proj|svcacct|service|admin|None|or-v1)-([A-Za-z0-9_-]{20,})",
    ),
    ("an OpenAI key", Digits, "sk-", r"\bsk-([A-Za-z0-9]{32,})"),
    ("an OpenAI key", Token, "sess-", r"\bsess-([A-Za-z0-9]{40})\b"),
    ("a Hugging Face token", Token, "hf_ api_org_", r"\b(?:hf|api_org)_([A-Za-z0-9]{30,})"),
    ("a Groq key", Token, "gsk_", r"\bgsk_([A-Za-z0-9]{40,})"),
    ("a Replicate token", Token, "r8_", r"\br8_([A-Za-z0-9]{37})"),
    ("a Perplexity key", Token, "pplx-", r"\bpplx-([A-Za-z0-9]{40,})"),
    ("an xAI key", Token, "xai-", r"\bxai-([A-Za-z0-9]{60,})"),
    ("a LangSmith key", Token, "lsv2_", r"\blsv2_(?:pt|sk)_([0-9a-f]{32}_[0-9a-f]{10})"),
    ("a Langfuse key", Token, "sk-lf-", r"\bsk-lf-([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"),
    ("a Tavily key", Digits, "tvly-", r"\btvly-([A-Za-z0-9-]{28,})"),
    ("a Pinecone key", Token, "pcsk_", r"\bpcsk_([A-Za-z0-9_]{50,})"),
    ("an E2B key", Token, "e2b_", r"\be2b_([0-9a-f]{40})"),
    ("an NVIDIA key", Token, "nvapi-", r"\bnvapi-([A-Za-z0-9_-]{50,})"),
    (
        "a Weights & Biases key",
        Token,
        "wandb",
        r"(?i)\bwandb[a-z_]{0,10}key['\x22]?\s{0,3}[:=]\s{0,3}['\x22]?([0-9a-f]{40})\b",
    ),
    // Messages and mail.
    ("a Slack token", Digits, "xox", r"\bxox[abceoprs](?:\.xox[bp])?-((?:[0-9A-Za-z]+-)*[0-9A-Za-z]{10,})"),
    ("a Slack token", Token, "xapp-", r"\bxapp-\d-([A-Z0-9]+-\d+-[A-Za-z0-9]+)"),
    (
        "a Slack webhook",
        Token,
        "hooks.slack",
        r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{30,})",
    ),
    (
        "a Discord token",
        Digits,
        ".",
        r"(?:^|[^A-Za-z0-9+/=_-])([MNO][A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45})",
    ),
    (
        "a Discord webhook",
        Token,
        "discord",
        r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{16,20}/([A-Za-z0-9_-]{50,})",
    ),
    (
        "a Teams webhook",
        Token,
        ".webhook.office.com .logic.azure.com",
        r"\.(?:webhook\.office|logic\.azure)\.com(?::443)?/[^\s\x22']{0,200}?([0-9A-Za-z_-]{32,})",
    ),
    ("a Telegram token", Digits, ":AA", r"\b(\d{8,10}:AA[A-Za-z0-9_-]{32,33})"),
    ("a Twilio key", Token, "SK", r"\bSK([0-9a-f]{32})\b"),
    ("a SendGrid key", Token, "SG.", r"\bSG\.([A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64})"),
    ("a Mailgun key", Token, "key-", r"\b(?:key|pubkey)-([0-9a-f]{32})\b"),
    ("a Mailgun key", Token, "-", r"\b([0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8})\b"),
    ("a Mailchimp key", Token, "-us", r"\b([0-9a-f]{32})-us\d{1,2}\b"),
    ("a Brevo key", Token, "xkeysib- xsmtpsib-", r"\bx(?:keysib|smtpsib)-([0-9a-f]{64}-[A-Za-z0-9]{16})"),
    ("a Resend key", Digits, "re_", r"\bre_([A-Za-z0-9]{6,12}_[A-Za-z0-9]{20,})"),
    (
        "a Zapier or IFTTT webhook",
        Token,
        "hooks.zapier.com maker.ifttt.com",
        r"(?:hooks\.zapier\.com/hooks/catch|maker\.ifttt\.com/trigger/\w+/with/key)/([A-Za-z0-9/_-]{12,})",
    ),
    // Money and shops.
    ("a Stripe key", Digits, "_live_ _test_ _prod_", r"\b(?:sk|rk)_(?:live|test|prod)_([0-9A-Za-z]{16,})"),
    ("a Stripe webhook secret", Token, "whsec_", r"\bwhsec_([A-Za-z0-9+/=]{24,})"),
    ("a Square token", Token, "sq0", r"\bsq0[a-z]{3}-([A-Za-z0-9_-]{22,})"),
    ("a Square token", Digits, "EAAA", r"(?:^|[^A-Za-z0-9+/=_-])EAAA([A-Za-z0-9_-]{58,})"),
    (
        "a Shopify token",
        Token,
        "shpat_ shpca_ shppa_ shpss_ shptka_ shpua_",
        r"\bshp(?:at|ca|pa|ss|tka|ua)_([0-9a-fA-F]{32})",
    ),
    (
        "a PayPal token",
        Token,
        "access_token$",
        r"access_token\$(?:production|sandbox)\$([0-9a-z]{16}\$[0-9a-f]{32})",
    ),
    (
        "a Plaid token",
        Token,
        "access-",
        r"\baccess-(?:sandbox|development|production)-([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})",
    ),
    ("a Flutterwave key", Token, "FLWSECK", r"\bFLWSECK(?:_TEST|_LIVE)?-([0-9A-Za-z]{12,})"),
    ("a Shippo token", Token, "shippo_", r"\bshippo_(?:live|test)_([0-9a-f]{40})"),
    ("an EasyPost key", Digits, "EZAK EZTK", r"(?:^|[^A-Za-z0-9+/=_-])EZ[AT]K([A-Za-z0-9]{54})"),
    ("a Duffel token", Token, "duffel_", r"\bduffel_(?:test|live)_([A-Za-z0-9_=-]{40,})"),
    ("a Lob key", Token, "live_ test_", r"\b(?:live|test)_([0-9a-f]{35})\b"),
    // Tools.
    ("a Databricks token", Token, "dapi", r"\bdapi([0-9a-f]{32})"),
    ("a Linear key", Token, "lin_", r"\blin_(?:api|oauth|wh)_([A-Za-z0-9]{32,})"),
    ("a Notion token", Digits, "secret_", r"\bsecret_([A-Za-z0-9]{43})\b"),
    ("a Notion token", Token, "ntn_", r"\bntn_([A-Za-z0-9]{40,})"),
    (
        "a Figma token",
        Digits,
        "figd_ figo_ figu_ figp_ figdr_ figor_ figur_ figpr_",
        r"\bfig[doup]r?_([A-Za-z0-9_-]{35,})",
    ),
    ("an Airtable token", Token, "pat", r"\bpat([A-Za-z0-9]{14}\.[0-9a-f]{64})"),
    ("a HubSpot token", Token, "pat-", r"\bpat-(?:na|eu|ap)\d-([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"),
    ("an Asana token", Token, ":", r"\b\d/\d{15,17}(?:/\d{15,17})?:([0-9a-f]{32})\b"),
    ("a ClickUp token", Token, "pk_", r"\bpk_\d{4,10}_([A-Z0-9]{32})"),
    ("a Contentful token", Digits, "CFPAT-", r"\bCFPAT-([A-Za-z0-9_-]{40,})"),
    ("a Typeform token", Digits, "tfp_", r"\btfp_([A-Za-z0-9_.=-]{40,})"),
    ("a Dropbox token", Digits, "sl.", r"\bsl\.(?:u\.)?([A-Za-z0-9_-]{100,})"),
    (
        "a LaunchDarkly key",
        Token,
        "sdk- api- rel-",
        r"\b(?:sdk|api|rel)-([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})\b",
    ),
    ("a PostHog key", Digits, "phx_", r"\bphx_([A-Za-z0-9]{40,})"),
    ("a Mapbox token", Token, "sk.", r"\bsk\.(eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,})"),
    ("a Readme key", Token, "rdme_", r"\brdme_([a-z0-9]{60,})"),
    ("a Facebook token", Digits, "EAA", r"(?:^|[^A-Za-z0-9+/=_-])EAA([A-Za-z0-9]{80,})"),
    (
        "a Twitter token",
        Digits,
        "AAAAAAAAAAAAAAAAAAAA",
        r"(?:^|[^A-Za-z0-9+/=_-])AAAAAAAAAAAAAAAAAAAA[A-Za-z0-9%]{3}([A-Za-z0-9%]{40,})",
    ),
    ("an Instagram token", Digits, "IGQV IGAA", r"(?:^|[^A-Za-z0-9+/=_-])IG(?:QV|AA)([A-Za-z0-9_-]{60,})"),
    ("a WakaTime key", Token, "waka_", r"\bwaka_([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"),
    // Watching and databases.
    ("a Grafana token", Token, "glc_", r"\bglc_([A-Za-z0-9+/=]{32,})"),
    ("a Grafana token", Token, "glsa_", r"\bglsa_([A-Za-z0-9]{32}_[0-9a-fA-F]{8})"),
    ("a Grafana key", Token, "eyJrIjoi", r"\b(eyJrIjoi[A-Za-z0-9+/=_-]{40,})"),
    (
        "a New Relic key",
        Token,
        "NRAK- NRAL- NRJS- NRII- NRBR- NRIQ- NRRA-",
        r"\bNR(?:AK|AL|JS|II|BR|IQ|RA)-([A-Za-z0-9_-]{19,})",
    ),
    ("a New Relic key", Token, "NRAL", r"\b([0-9a-fA-F]{36}NRAL)\b"),
    (
        "a Datadog key",
        Token,
        "dd datadog",
        r"(?i)\b(?:dd|datadog)[a-z_.-]{0,20}key['\x22]?\s{0,3}[:=]\s{0,3}['\x22]?([0-9a-f]{32,40})\b",
    ),
    ("a Sentry token", Token, "sntry", r"\bsntry[su]_([A-Za-z0-9_=+/]{40,})"),
    ("a Sentry login", Token, "https://", r"https://[0-9a-f]{32}:([0-9a-f]{32})@"),
    (
        "a Honeycomb key",
        Digits,
        "hcaik_ hcalk_ hcamk_ hcbik_ hcblk_ hcbmk_ hcxik_ hcxlk_ hcxmk_",
        r"\bhc[abx](?:ik|lk|mk)_([A-Za-z0-9]{30,})",
    ),
    ("a Dynatrace token", Token, "dt0", r"\bdt0[a-z]\d\d\.([A-Z0-9]{24}\.[A-Z0-9]{64})"),
    (
        "a PagerDuty key",
        Token,
        "pagerduty",
        r"(?i)\bpagerduty[a-z_]{0,20}key['\x22]?\s{0,3}[:=]\s{0,3}['\x22]?([A-Za-z0-9+_-]{20,32})\b",
    ),
    ("a PlanetScale password", Token, "pscale_", r"\bpscale_(?:tkn|pw|oauth|app)_([A-Za-z0-9_.=-]{30,})"),
    ("a Supabase key", Token, "sbp_ sb_secret_", r"\b(?:sbp_(?:oauth_)?|sb_secret_)([A-Za-z0-9_-]{20,})"),
    ("a Neon key", Digits, "napi_", r"\bnapi_([a-z0-9]{50,})"),
    ("an Aiven token", Token, "AVNS_", r"\bAVNS_([A-Za-z0-9_-]{15,})"),
    (
        "a Turso or Convex key",
        Digits,
        "prod: dev: preview:",
        r"\b(?:prod|dev|preview):[a-z]+-[a-z]+-\d+\|([A-Za-z0-9+/=_-]{40,})",
    ),
    // Logins on the wire.
    ("a JSON web token", Token, "eyJ", r"\beyJ[A-Za-z0-9_-]{8,}\.(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,})"),
    (
        "a password in an address",
        Password,
        "://",
        r#"\b[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s/:@'"<>`,]{0,100}:([^\s/'"<>`,]{3,200})@[A-Za-z0-9\[$_%{.-]"#,
    ),
    ("a login", Token, "bearer", r"(?i)\bbearer[\s:=]+['\x22]?([A-Za-z0-9_.=+/~-]{20,})"),
    (
        "a login",
        Token,
        "authorization",
        r"(?i)\bauthorization['\x22]?\s{0,3}[:=,]\s{0,3}['\x22]?(?:basic|token|apikey|digest)[\s:=]+['\x22]?([A-Za-z0-9_.=+/~-]{16,})",
    ),
    (
        "a login",
        Token,
        "x-api- x-auth- x-access-",
        r"(?i)\bx-(?:api|auth|access)-(?:key|token)['\x22]?\s{0,3}[:=,]\s{0,3}['\x22]?([A-Za-z0-9_.=+/~-]{20,})",
    ),
    (
        "a login",
        Password,
        "curl",
        r"\bcurl\s[^\n]{0,200}(?:-u|--user)[\s=]+['\x22]?[^\s:'\x22$]{1,60}:([^\s'\x22$]{6,100})",
    ),
    (
        "a password",
        Password,
        "login",
        r"(?i)\b(?:machine\s+\S{1,100}\s+)?login\s+\S{1,100}\s+password\s+(\S{6,200})",
    ),
    (
        "a password",
        Password,
        "sshpass mysql mariadb redis-cli",
        r"\b(?:sshpass|mysql|mysqldump|mariadb|redis-cli)\s[^\n]{0,100}?(?:\s-p\s?|\s-a\s|--password=)['\x22]?([^\s'\x22$]{8,100})",
    ),
];

/// How much of a text is looked at around an anchor, in bytes before and behind: every shape is told by so much of it. Keys
/// with a header are longer than all others.
const AROUND: (usize, usize) = (160, 6000);

/// How much must be seen behind an anchor that another has shown already.
const ENOUGH: usize = 400;

struct Shapes {
    /// What each shape has in it, and which shape that is.
    anchors: AhoCorasick,
    of_anchor: Vec<usize>,
    each: Vec<Regex>,
}

static COMPILED: LazyLock<Option<Shapes>> = LazyLock::new(|| {
    let anchors = SHAPES.iter().enumerate();
    let anchors = anchors.flat_map(|(shape, row)| row.2.split(' ').map(move |anchor| (shape, anchor)));
    let (of_anchor, words): (Vec<usize>, Vec<&str>) = anchors.unzip();
    let anchors = AhoCorasick::builder().ascii_case_insensitive(true).build(words).ok()?;
    let each = SHAPES.iter().map(|row| RegexBuilder::new(row.3).unicode(false).build());
    Some(Shapes { anchors, of_anchor, each: each.collect::<Result<_, _>>().ok()? })
});

/// The first token that `is_new`.
pub(super) fn find<'a>(text: &'a [u8], is_new: impl Fn(&Hit<'_>) -> bool) -> Option<Hit<'a>> {
    let Shapes { anchors, of_anchor, each } = COMPILED.as_ref()?;
    let mut seen_to = vec![0; each.len()];
    for anchor in anchors.find_overlapping_iter(text) {
        let shape = of_anchor[anchor.pattern().as_usize()];
        let end = text.len().min(anchor.end() + AROUND.1);
        if end > seen_to[shape] && anchor.end() + ENOUGH > seen_to[shape] {
            seen_to[shape] = end;
            let from = anchor.start().saturating_sub(AROUND.0);
            let found = look(text, from, end, shape, &each[shape], &is_new);
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

fn look<'a>(
    text: &'a [u8],
    from: usize,
    end: usize,
    shape: usize,
    regex: &Regex,
    is_new: impl Fn(&Hit<'_>) -> bool,
) -> Option<Hit<'a>> {
    let (what, check, ..) = SHAPES[shape];
    regex.captures_iter(&text[from..end]).find_map(|found| {
        let whole = found.get(0)?;
        let body = found.get(1).unwrap_or(whole);
        let hit = Hit { what, text: body.as_bytes(), at: from + whole.start() };
        (is_one(check, hit.text) && is_new(&hit)).then_some(hit)
    })
}

fn is_one(check: Check, body: &[u8]) -> bool {
    match check {
        Check::Token => judge::is_token(body) && !is_shown(body),
        Check::Digits => {
            let digits = body.iter().filter(|byte| byte.is_ascii_digit()).count();
            let capitals = body.iter().filter(|byte| byte.is_ascii_uppercase()).count();
            judge::is_token(body) && (digits >= 2 || digits + capitals >= 6)
        }
        Check::Password => judge::is_login(body),
        Check::None => true,
    }
}

/// The token that shows everywhere what such a token is.
fn is_shown(body: &[u8]) -> bool {
    body.starts_with(b"eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwi")
}

#[cfg(test)]
pub(super) fn all_compile() -> bool {
    COMPILED.is_some()
}
