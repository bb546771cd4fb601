//! Authentication: browsers by a link and a cookie, programs by a token, and no other client.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use rstest::rstest;
use serde_json::json;

use super::client::{Reply, TestServer};
use super::started;
use crate::sandbox;

/// The cookie of an authenticated browser.
fn cookie(opened: &Reply) -> String {
    assert_eq!((opened.status, opened.header("location")), (303, Some("/")), "{opened:#?}");
    opened.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

#[test]
fn a_browser_is_let_in_once_by_a_code_and_then_by_its_cookie_alone() {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    let page = served.browses("GET / HTTP/1.1");
    assert_eq!((page.status, page.header("location")), (303, Some("/login")));
    let code = served.invitation().to_owned();
    let opened = served.browses(&format!("GET {code} HTTP/1.1"));
    let set = opened.header("set-cookie").unwrap();
    assert!(set.contains("; HttpOnly; SameSite=Strict") && !set.contains("Secure"), "{set}");
    let cookie = cookie(&opened);
    let listed = served.browses(&format!("GET /api/v1/loops HTTP/1.1\r\nCookie: other=1; {cookie}"));
    assert_eq!(listed.status, 200);
    let policy = listed.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    served.browses(&format!("GET {code} HTTP/1.1")).with_status(401).says("was used already");
    // A change must come from a page of ours.
    let post = |more: &str| {
        let head = format!(
            "POST /api/v1/loops HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\nContent-Length: 2{more}\r\n\r\n{{}}",
            served.name()
        );
        served.says(&head)
    };
    post("\r\nOrigin: http://evil.example").with_status(403).says("another origin");
    post(&format!("\r\nOrigin: http://{}", served.host())).with_status(403).says("another origin");
    post("\r\nSec-Fetch-Site: cross-site").with_status(403).says("another origin");
    post(&format!("\r\nOrigin: http://{}", served.name())).with_status(400).says("goal is missing");
    served.ends();
    let dir = sandbox.root().join("home/state/refrain/serve");
    let kept: Vec<_> =
        fs::read_dir(dir).unwrap().flatten().map(|file| fs::read_to_string(file.path()).unwrap()).collect();
    let token = cookie.split_once('=').unwrap().1;
    assert!(kept.len() == 2 && kept.iter().all(|text| !text.contains(token)), "no token is kept");
}

/// Browsers send the cookies of 127.0.0.1 to every port of it, so an agent's own server may see one: there is none there, and
/// one is good nowhere else.
#[test]
fn a_cookie_is_given_to_one_name_and_good_under_no_other_nor_as_a_token() {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    for path in ["/", "/p/project/job?from=1", "/login", "/open?code=x"] {
        let sent = served.asks(&format!("GET {path} HTTP/1.1\r\nAccept: text/html"));
        assert_eq!((sent.status, sent.header("set-cookie")), (303, None), "{sent:#?}");
        assert_eq!(sent.header("location"), Some(format!("http://{}{path}", served.name()).as_str()));
    }
    let login = format!(
        "POST /login HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}",
        6 + served.token().len()
    );
    let body = format!("token={}", served.token());
    let post =
        |host: &str| served.says(&format!("{login}\r\nHost: {host}\r\nConnection: close\r\n\r\n{body}"));
    assert_eq!(post(&served.host()).header("set-cookie"), None);
    let cookie = cookie(&post(&served.name()));
    let asks = |host: &str, with: &str| {
        served.says(&format!(
            "GET /api/v1/loops HTTP/1.1\r\nHost: {host}\r\n{with}\r\nConnection: close\r\n\r\n"
        ))
    };
    asks(&served.name(), &format!("Cookie: {cookie}")).with_status(200);
    asks(&served.host(), &format!("Cookie: {cookie}")).with_status(401);
    let (name, value) = cookie.split_once('=').unwrap();
    asks(&served.name(), &format!("Authorization: Bearer {value}")).with_status(401);
    asks(&served.host(), &format!("Authorization: Bearer {value}")).with_status(401);
    asks(&served.name(), &format!("Cookie: {name}={}", served.token())).with_status(401);
    // Another server is another place.
    let other = TestServer::begin(&sandbox, &[]);
    let elsewhere = format!("Cookie: refrain_{}={value}", other.port());
    let head = format!("GET /api/v1/loops HTTP/1.1\r\nHost: {}\r\n{elsewhere}\r\n\r\n", other.name());
    other.says(&head).with_status(401);
    other.ends();
    served.ends();
}

/// Browsers resolve the name to either loopback address, and send their cookie to any server that listens there.
#[test]
fn the_server_name_leads_to_no_other_server() {
    let sandbox = sandbox();
    let Ok(others) = TcpListener::bind("[::1]:0") else { return };
    let served = TestServer::begin(&sandbox, &[]);
    let mut stream = TcpStream::connect(("::1", served.port())).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", served.name()).unwrap();
    Reply::read(BufReader::new(stream)).with_status(401);
    let at = others.local_addr().unwrap();
    let refused = sandbox.refrain(&["serve", "--port", &at.port().to_string()]).with_code(1);
    assert!(refused.stderr.contains(&format!("{at} is taken")), "{}", refused.stderr);
}

/// A proxy that passes on its own name for the server leads to the public origin as well as one that passes on the
/// public name.
#[test]
fn behind_a_proxy_people_come_under_its_origin() {
    let sandbox = sandbox();
    let origin = "https://loops.example.org";
    let served = TestServer::begin(&sandbox, &["--behind-proxy", origin]);
    assert_eq!(served.url(), origin);
    let body = format!("token={}", served.token());
    for host in ["loops.example.org".to_owned(), served.host()] {
        let says = |head: &str, body: &str| {
            let length = body.len();
            let more = "Connection: close\r\nAccept: text/html";
            served
                .says(&format!("{head}\r\nHost: {host}\r\nContent-Length: {length}\r\n{more}\r\n\r\n{body}"))
        };
        assert_eq!(says("GET / HTTP/1.1", "").header("location"), Some("/login"));
        let form = "Content-Type: application/x-www-form-urlencoded";
        let opened = says(&format!("POST /login HTTP/1.1\r\nOrigin: {origin}\r\n{form}"), &body);
        let cookie = cookie(&opened);
        assert!(cookie.starts_with("__Host-refrain_"), "{cookie}");
        says(&format!("GET / HTTP/1.1\r\nCookie: {cookie}"), "").with_status(200);
        let foreign = format!("POST /login HTTP/1.1\r\nOrigin: https://evil.example\r\n{form}");
        says(&foreign, &body).with_status(403).says("another origin");
    }
    served.ends();
}

#[test]
fn access_needs_a_token_that_was_issued() {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    let job = started(&sandbox, &served);
    for path in [&job, &format!("{job}/export"), "/api/v1/loops", "/api/v1/projects", "/api/v1/openapi.json"]
        .into_iter()
        .chain([
            "/api/v1/events",
            "/api/v1/usage",
            "/api/v1/metrics",
            "/mcp",
            "/",
            "/start",
            "/usage",
            "/memory",
            "/doctor",
            "/settings",
            "/search?text=job",
        ])
    {
        let refused = served.asks(&format!("GET {path} HTTP/1.1")).with_status(401);
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"), "{path}");
        assert_eq!(refused.json()["code"], "unauthorized", "{path}");
        assert!(!refused.body.contains("job") && !refused.body.contains("Mend it"), "{refused:#?}");
    }
    let wrong =
        |token: &str| served.asks(&format!("GET /api/v1/loops HTTP/1.1\r\nAuthorization: Bearer {token}"));
    wrong("").with_status(401);
    wrong("../../etc/passwd").with_status(401).says("refrain serve token");
    (0..40).for_each(|n| drop(wrong(&format!("{n:064x}"))));
    let refused = wrong("another").with_status(429);
    assert_eq!(refused.header("retry-after"), Some("60"));
    refused.says("too many wrong tokens");
    served.gets("/api/v1/loops").with_status(200);
    served.posts(&format!("{job}/cancel"), json!({"now": true})).with_status(200);
    served.ends();
}

#[test]
fn access_ends_once_tokens_are_revoked() {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    let opened = served.browses(&format!("GET {} HTTP/1.1", served.invitation()));
    let cookie = cookie(&opened);
    let browses = || served.browses(&format!("GET /api/v1/loops HTTP/1.1\r\nCookie: {cookie}"));
    served.gets("/api/v1/loops").with_status(200);
    browses().with_status(200);
    let said = sandbox.refrain(&["serve", "token", "--revoke"]).with_code(0).stdout;
    assert_eq!(said, "tokens and browsers that are let in no more: 2\n");
    served.gets("/api/v1/loops").with_status(401).says("the token is not known here");
    let sent = browses();
    assert_eq!((sent.status, sent.header("location")), (303, Some("/login")));
    served.ends();
}

#[rstest]
#[case("Host: evil.example")]
#[case("Host: evil.example:PORT")]
#[case("Host: 127.0.0.1:1")]
#[case("Host: 127.0.0.1.evil.example:PORT")]
#[case("Host: evil.localhost:PORT")]
#[case("Host: refrain.localhost")]
#[case("Host: refrain.localhost.evil.example:PORT")]
#[case("Host: ")]
fn a_name_that_leads_here_by_anothers_doing_is_refused(#[case] host: &str) {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    let host = host.replace("PORT", &served.port().to_string());
    let token = served.token();
    for path in ["/", "/login", "/api/v1/loops", "/mcp"] {
        let reply =
            served.says(&format!("GET {path} HTTP/1.1\r\n{host}\r\nAuthorization: Bearer {token}\r\n\r\n"));
        reply.with_status(403).says("not found under that name");
    }
    served.ends();
}

/// A browser sends neither; a proxy in between may take the other host for the name.
#[rstest]
#[case::two_names("GET /api/v1/loops HTTP/1.1\r\nHost: HERE\r\nHost: evil.example")]
#[case::the_same_twice("GET /api/v1/loops HTTP/1.1\r\nHost: HERE\r\nHost: HERE")]
#[case::another_target("GET http://evil.example/api/v1/loops HTTP/1.1\r\nHost: HERE")]
#[case::a_whole_target("GET http://HERE/api/v1/loops HTTP/1.1\r\nHost: HERE")]
fn a_request_that_names_two_hosts_is_refused(#[case] head: &str) {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    let head = head.replace("HERE", &served.host());
    let reply = served.says(&format!("{head}\r\nAuthorization: Bearer {}\r\n\r\n", served.token()));
    reply.with_status(400).says("names more than one host");
    served.ends();
}

/// All connection slots are taken by silent clients: the oldest is closed for the next client.
#[test]
fn silent_clients_do_not_shut_out_others() {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    let mut silent: Vec<_> = (0..300).map(|_| served.connects()).collect();
    assert_eq!(served.gets("/api/v1/loops").status, 200);
    assert_eq!(silent[0].read(&mut [0]).unwrap(), 0, "it was closed");
    served.ends();
}

/// An authenticated client has only a part of the connections, for streams too.
#[test]
fn a_token_has_a_limit_of_connections_and_another_token_is_admitted() {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    let streams: Vec<_> = (0..64).map(|_| served.listens(None)).collect();
    served.gets("/api/v1/loops").with_status(429).says("accepted: 64 at a time");
    let other = sandbox.refrain(&["serve", "token"]).with_code(0).stdout;
    let asks = format!("GET /api/v1/loops HTTP/1.1\r\nAuthorization: Bearer {}", other.trim());
    assert_eq!(served.asks(&asks).status, 200);
    drop(streams);
    served.ends();
}

/// A request without a token is refused before its body is read.
#[test]
fn a_request_without_a_token_is_refused_before_its_body_is_read() {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    let post = |path: &str, more: &str| {
        let head = format!("POST {path} HTTP/1.1\r\nHost: {}\r\n{more}\r\n\r\n{{", served.host());
        served.says(&head)
    };
    // The announced body never comes, and the server does not wait for it.
    post("/api/v1/loops", "Content-Length: 900000").with_status(401).says("a token is missing");
    post("/mcp", "Content-Length: 900000").with_status(401);
    post("/start", "Content-Length: 900000\r\nAuthorization: Bearer nobody").with_status(401);
    let login = format!("POST /login HTTP/1.1\r\nHost: {}\r\nContent-Length: 5000\r\n\r\n", served.name());
    served.says(&login).with_status(413).says("accepted: 4096 bytes");
    served.ends();
}

#[rstest]
#[case("GET /nothing", "", 404, "nothing is there")]
#[case("GET /api/v1/nothing", "", 404, "nothing is there")]
#[case("GET /p/PROJECT/nothing", "", 404, "nothing")]
#[case("GET /api/v1/projects/PROJECT/loops/nothing", "", 404, "nothing")]
#[case("DELETE /api/v1/loops", "", 405, "DELETE is not accepted here")]
#[case("DELETE /login", "", 405, "DELETE is not accepted here")]
#[case("GET /api/v1/loops/preview", "", 405, "GET is not accepted here")]
#[case("GET /api/v1/loops?limit=x", "", 400, "limit x: accepted: whole numbers from 0 on")]
#[case(
    "GET /api/v1/loops?colour=red",
    "",
    400,
    "colour: there is no such parameter; accepted: limit, project, status, text"
)]
#[case(
    "POST /start",
    "Content-Type: text/csv",
    415,
    "accepted: Content-Type: application/x-www-form-urlencoded"
)]
#[case("POST /mcp", "Content-Type: text/csv", 406, "accepted: Accept: application/json, text/event-stream")]
#[case("POST /api/v1/loops", "Origin: http://evil.example", 403, "another origin")]
fn an_error_is_a_page_for_browsers_and_json_for_programs(
    #[case] asked: &str,
    #[case] with: &str,
    #[case] status: u16,
    #[case] says: &str,
) {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    let projects = served.gets("/api/v1/projects").json();
    let asked = asked.replace("PROJECT", projects[0]["name"].as_str().unwrap());
    let with = if with.is_empty() { String::new() } else { format!("\r\n{with}") };
    let head =
        |token: &str| format!("{asked} HTTP/1.1\r\nContent-Length: 0\r\nAuthorization: Bearer {token}{with}");
    let page = served.browses(&head(served.token())).with_status(status);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"), "{page:#?}");
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'"), "{policy}");
    page.says(says);
    if ["/p/", "/?", "/login"].iter().any(|page| asked.contains(page)) {
        // A page's own address is for browsers.
        return served.ends();
    }
    let answer = served.asks(&head(served.token())).with_status(status);
    assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:#?}");
    assert!(answer.json()["code"].is_string() && answer.json()["error"].as_str().unwrap().contains(says));
    served.ends();
}

/// Eight clients that read nothing of their answers, twenty that send nothing: the others are served, and little
/// memory is used.
#[test]
fn slow_readers_delay_no_other_client_and_use_little_memory() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", crate::CLAIM);
    sandbox.refrain(&["start", "Mend it.", "--command", &agent, "--name", "job", "--quiet"]).with_code(0);
    let line = "x".repeat(999) + "\n";
    testkit::write(&sandbox.loop_dir("job").join("iterations/0001/output.log"), line.repeat(100_000));
    let served = TestServer::begin(&sandbox, &[]);
    let project = served.gets("/api/v1/projects").json()[0]["name"].as_str().unwrap().to_owned();
    let log = format!("/api/v1/projects/{project}/loops/job/attempts/1/logs/output");
    let resident = || {
        let status = fs::read_to_string(format!("/proc/{}/status", served.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:").map(str::trim));
        line.map_or(0, |line| line.split(' ').next().unwrap().parse::<u64>().unwrap())
    };
    let whole = served.gets(&format!("{log}?from=0&limit=1048576")).with_status(200);
    assert_eq!(whole.json()["total"], 100_000_000);
    assert!(whole.body.len() > 1_000_000);
    let before = resident();
    let (host, token) = (served.host(), served.token());
    let ask = format!(
        "GET {log}?from=0&limit=1048576 HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    let _silent: Vec<_> = (0..20).map(|_| served.connects()).collect();
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut stream = served.connects();
        stream.write_all(ask.as_bytes()).unwrap();
        // The answer has begun, and is left lying.
        stream.read_exact(&mut [0; 9]).unwrap();
        slow.push(stream);
    }
    served.gets("/api/v1/loops").with_status(200);
    let held = resident().saturating_sub(before);
    assert!(held < 64_000, "{held} KiB for eight parts of 1 MiB");
    drop(slow);
    served.ends();
}
