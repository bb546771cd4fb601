//! The host and the name of a remote's repository.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// A repository at a host, parsed from the address of a remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryAddress {
    /// The host, in lower case and without a port.
    pub host: String,
    /// The name, with its groups: `owner/name`.
    pub path: String,
}

impl RepositoryAddress {
    /// Parses the address of a remote; none if it has no host, or its path is no name of a repository. An ssh host
    /// alias is used as it is.
    pub fn of(url: &str) -> Option<Self> {
        let (place, path) = match url.split_once("://") {
            Some(("https" | "http" | "ssh" | "git" | "git+ssh" | "ssh+git", rest)) => rest.split_once('/')?,
            Some(_) => return None,
            // The scp form: with a colon before the first slash.
            None => url.split_once(':').filter(|(host, _)| !host.contains('/'))?,
        };
        let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
        let host = host.split(':').next()?.to_lowercase();
        // GitHub's ssh host on the https port.
        let host = if host == "ssh.github.com" { "github.com".to_owned() } else { host };
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let is_word = |word: &str| {
            let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            !matches!(word, "" | "." | "..") && word.bytes().all(is_known)
        };
        let is_path = path.contains('/') && path.split('/').all(is_word);
        (is_word(&host) && is_path).then(|| Self { host, path: path.to_owned() })
    }
}

/// What is encoded: all but the unreserved characters of RFC 3986, section 2.3.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A word encoded for the path or the query of a URL.
pub(super) fn encoded(word: &str) -> String {
    utf8_percent_encode(word, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_from_the_address_of_a_remote() {
        for (url, expected) in [
            ("https://github.com/o/r.git", Some(("github.com", "o/r"))),
            ("https://me@GitHub.com:443/o/r/", Some(("github.com", "o/r"))),
            ("git@github.com:o/r.git", Some(("github.com", "o/r"))),
            ("ssh://git@ssh.github.com:443/o/r.git", Some(("github.com", "o/r"))),
            ("ssh://git@gitlab.example.org:2222/a/b/c.git", Some(("gitlab.example.org", "a/b/c"))),
            ("git@gitlab.com:a/b/c", Some(("gitlab.com", "a/b/c"))),
            ("/srv/git/o/r.git", None),
            ("../remote.git", None),
            ("./a:b/c", None),
            ("file:///srv/o/r.git", None),
            ("https://github.com/r", None),
            ("https://github.com/o/../r", None),
            ("https://github.com/o/r?x=y", None),
            ("git@github.com:--flag/{owner}", None),
        ] {
            let found = RepositoryAddress::of(url);
            let found = found.as_ref().map(|place| (place.host.as_str(), place.path.as_str()));
            assert_eq!(found, expected, "{url}");
        }
        assert_eq!(encoded("refrain/über{owner}:x"), "refrain%2F%C3%BCber%7Bowner%7D%3Ax");
    }
}
