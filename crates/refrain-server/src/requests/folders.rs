//! Which folders are open, and which projects lie there. A path that a caller names is resolved first, links followed,
//! and then has to lie inside a folder that the person opened (issue 8): paths are never compared as text.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_app::{Caller, Context, RequestError};
use refrain_core::LoopId;
use refrain_engine::{EngineError, Keys, KnownLoops, Service};

use super::status::name;
use super::{Handovers, LoopAddress, OpenError, Refusal, RefusalKind, RequestHandler};

const MOST_NAMED: usize = 8;

impl RequestHandler {
    /// A request handler for these folders, or for the project that contains `here` if there are none.
    pub fn open(context: &Context, roots: &[Utf8PathBuf]) -> Result<Self, OpenError> {
        let here = &context.dir;
        let own = Service::open(here, context.host.clone())?.project().worktree.clone();
        let named: Vec<_> =
            if roots.is_empty() { vec![own] } else { roots.iter().map(|root| here.join(root)).collect() };
        let open = |root: &Utf8PathBuf| match root.canonicalize_utf8() {
            Ok(root) if root.is_dir() => Ok(root),
            _ => Err(OpenError::NoFolder(root.clone())),
        };
        // A loop started through this server is no part of the server's own trace.
        let mut context = context.clone();
        context.host.env.retain(|(name, _)| name != "TRACEPARENT");
        let handovers = Handovers::default();
        Ok(Self {
            context,
            handovers,
            roots: named.iter().map(open).collect::<Result<_, _>>()?,
            everywhere: false,
            known: KnownLoops::default(),
        })
    }

    /// The same, but without folders for all projects that Refrain has worked in too: only for the user who owns
    /// them.
    pub fn open_everywhere(context: &Context, roots: &[Utf8PathBuf]) -> Result<Self, OpenError> {
        Ok(Self { everywhere: roots.is_empty(), ..Self::open(context, roots)? })
    }

    #[must_use]
    pub fn called_by(mut self, caller: Caller) -> Self {
        self.context.caller = caller;
        self
    }

    /// The requests that hand loops to runners of their own.
    pub fn handovers(&self) -> Handovers {
        self.handovers.clone()
    }

    fn open_now(&self) -> Vec<Utf8PathBuf> {
        let own = self.roots.first().filter(|_| self.everywhere).and_then(|root| self.service(root).ok());
        let known = own.map(|own| own.known_projects()).unwrap_or_default();
        let known = known.iter().filter_map(|root| root.canonicalize_utf8().ok());
        self.roots.iter().cloned().chain(known).collect()
    }

    pub(crate) fn roots(&self) -> &[Utf8PathBuf] {
        &self.roots
    }

    pub(crate) fn version(&self) -> &str {
        &self.context.host.version
    }

    pub(crate) fn keys(&self) -> Keys {
        Keys::new(&self.context.host.state_home)
    }

    /// The folder that a caller names; the first root by default.
    pub(super) fn folder(&self, workspace: Option<&str>) -> Result<Utf8PathBuf, Refusal> {
        let [first, ..] = self.roots.as_slice() else { return Err(Refusal::new("no folder is open")) };
        let Some(asked) = workspace else { return Ok(first.clone()) };
        let open = self.open_now();
        // The same text for a missing folder and for one outside: callers must not learn what exists there.
        let refused = || {
            let roots = named(&open);
            let error = format!("workspace {asked}: accepted: a folder inside {roots}, links followed");
            Refusal::new(error).about("workspace")
        };
        let found = first.join(asked).canonicalize_utf8().map_err(|_| refused())?;
        let is_inside = open.iter().any(|root| found.starts_with(root));
        if asked.is_empty() || !is_inside || !found.is_dir() {
            return Err(refused());
        }
        // A `.git` file there may point to a project elsewhere.
        let data = self.service(&found)?.project().data.clone();
        let known = open.iter().filter_map(|root| self.service(root).ok());
        let mut known = known.map(|service| service.project().data.clone());
        match open.iter().any(|root| data.starts_with(root)) || known.any(|known| known == data) {
            true => Ok(found),
            false => Err(refused()),
        }
    }

    /// A file that a caller names, as seen from a folder.
    pub(super) fn file(&self, name: &str, asked: &str, folder: &Utf8Path) -> Result<Utf8PathBuf, Refusal> {
        let open = self.open_now();
        let found = folder.join(asked).canonicalize_utf8().ok();
        let found = found.filter(|found| found.is_file() && open.iter().any(|root| found.starts_with(root)));
        found.ok_or_else(|| {
            let roots = named(&self.roots);
            Refusal::new(format!("{name} {asked}: accepted: a file inside {roots}, links followed"))
        })
    }

    /// The service of the project that a folder lies in.
    pub(super) fn service(&self, folder: &Utf8Path) -> Result<Service, RequestError> {
        Ok(self.context.open(folder, false)?.knowing(self.known.clone()))
    }

    /// The services of the projects of the roots, and of those in them that Refrain has worked in, each once.
    pub(crate) fn services(&self) -> Vec<Service> {
        let own: Vec<_> = self.roots.iter().filter_map(|root| self.service(root).ok()).collect();
        let known = own.first().map(Service::known_projects).unwrap_or_default();
        let inside = |root: &Utf8PathBuf| {
            let is_inside = |root: Utf8PathBuf| self.roots.iter().any(|open| root.starts_with(open));
            self.everywhere || root.canonicalize_utf8().is_ok_and(is_inside)
        };
        let known = known.iter().filter(|root| inside(root)).filter_map(|root| self.service(root).ok());
        let mut seen = BTreeSet::new();
        let known: Vec<_> = own.into_iter().chain(known).collect();
        known.into_iter().filter(|service| seen.insert(service.project().data.clone())).collect()
    }

    /// Whether all of a project lies in the folders that are open.
    pub(super) fn is_whole(&self, service: &Service) -> bool {
        self.everywhere || self.roots.iter().any(|root| service.project().root.starts_with(root))
    }

    /// The service of the first root's project, for sums over all of it.
    pub(super) fn whole(&self) -> Result<Service, Refusal> {
        let service = self.service(&self.folder(None)?)?;
        let project = name(&service);
        let nothing = || {
            Refusal::of(
                RefusalKind::NotFound,
                format!("project {project} is open in part here, and sums are of all of one"),
            )
        };
        Some(service).filter(|service| self.is_whole(service)).ok_or_else(nothing)
    }

    /// Whether the project has this loop or plan, and it works in an open folder: if a project is open only in part,
    /// its other loops are hidden.
    pub(super) fn sees(&self, service: &Service, id: &LoopId) -> bool {
        if service.find(id).is_err() {
            return false;
        }
        let is_open = |folder: Utf8PathBuf| self.roots.iter().any(|root| folder.starts_with(root));
        self.is_whole(service) || service.folder_of(id).is_ok_and(is_open)
    }

    /// A loop, or a plan, by the names in an address.
    pub(crate) fn open_place(&self, place: &LoopAddress) -> Result<(Service, LoopId), Refusal> {
        let id: LoopId = place.id.parse().map_err(|error| Refusal::new(format!("{}: {error}", place.id)))?;
        self.at(&place.project, id)
    }

    pub(super) fn at(&self, project: &str, id: LoopId) -> Result<(Service, LoopId), Refusal> {
        let mut services = self.services().into_iter();
        let service = services.find(|service| name(service).eq_ignore_ascii_case(project));
        let nothing = |what: String| Refusal::of(RefusalKind::NotFound, format!("there is no {what}"));
        let service = service.ok_or_else(|| nothing(format!("project {project} here")))?;
        match self.sees(&service, &id) {
            true => Ok((service, id)),
            false => Err(nothing(format!("loop {id} in {project}"))),
        }
    }

    /// The project with this loop or plan; if several have the id, the workspace decides.
    pub(crate) fn of_loop(&self, id: &str, workspace: Option<&str>) -> Result<(Service, LoopId), Refusal> {
        let id: LoopId = id.parse().map_err(|error| Refusal::new(format!("loop {id}: {error}")))?;
        let services = match workspace {
            Some(_) => vec![self.service(&self.folder(workspace)?)?],
            None => self.services(),
        };
        let has = |service: &&Service| self.sees(service, &id);
        let found: Vec<_> = services.iter().filter(has).collect();
        match found.as_slice() {
            [only] => Ok(((*only).clone(), id)),
            // The first project's own words, which name the loop that was probably meant.
            [] => match services.first().map(|service| service.locate(&id)) {
                Some(Err(error @ EngineError::NoLoop { .. })) if self.is_whole(&services[0]) => {
                    Err(error.into())
                }
                _ => Err(Refusal::of(RefusalKind::NotFound, format!("no loop {id}"))),
            },
            [..] => {
                let places: Vec<_> = found.iter().map(|service| service.project().root.as_str()).collect();
                let places = places.join(" and ");
                let error = format!("loop {id}: there is one in {places}");
                Err(Refusal::new(error).with_tools("workspace says which"))
            }
        }
    }
}

/// The folders, each once, as an error lists them.
fn named(roots: &[Utf8PathBuf]) -> String {
    let all: BTreeSet<_> = roots.iter().map(|root| root.as_str()).collect();
    let first: Vec<_> = all.iter().copied().take(MOST_NAMED).collect();
    let more = all.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" or {more} more") } else { String::new() };
    format!("{}{more}", first.join(" or "))
}
