//! The pages.

use kelvin_report::compare::{self, NOISE, Run, Side};
use kelvin_report::html::{self, Frame, Link, STYLE};
use kelvin_report::{RunReport, group, history};
use kelvin_store::{GroupId, Liveness, Store};
use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::Shared;
use super::answer::{Failure, Result, SiteResponse};
use super::documents;
use super::query::Query;

const TEMPLATES: [(&str, &str); 7] = [
    ("base.html", include_str!("assets/base.html")),
    ("runs.html", include_str!("assets/runs.html")),
    ("groups.html", include_str!("assets/groups.html")),
    ("compare.html", include_str!("assets/compare.html")),
    ("history.html", include_str!("assets/history.html")),
    ("findings.html", include_str!("assets/findings.html")),
    ("start.html", include_str!("assets/start.html")),
];

/// The style sheet of the pages that are not reports; they also use that of the reports.
const OWN_STYLE: &str = include_str!("assets/site.css");

/// The templates.
pub(super) fn environment() -> std::result::Result<Environment<'static>, Box<dyn std::error::Error>> {
    let mut environment = Environment::new();
    for (name, template) in TEMPLATES {
        environment.add_template(name, template)?;
    }
    html::add_frame(&mut environment)?;
    Ok(environment)
}

/// The runs of one side of a comparison.
struct LoadedSide {
    name: String,
    runs: Vec<Run>,
    notes: Vec<String>,
}

impl LoadedSide {
    fn side(&self) -> Side<'_> {
        Side::new(self.name.clone(), &self.runs, self.notes.clone())
    }
}

/// The links above every page.
fn frame(shared: &Shared, here: &str) -> Frame {
    let link = |address: &str, text: &str| Link {
        address: address.into(),
        text: text.into(),
        current: address == here,
    };
    let mut links = vec![
        link("/", "Runs"),
        link("/groups", "Groups"),
        link("/compare", "Compare"),
        link("/history", "History"),
        link("/findings", "Findings"),
    ];
    if shared.jobs.is_some() {
        links.push(link("/start", "Start"));
    }
    Frame { links, findings: "/findings/".into(), ..Frame::default() }
}

impl Shared {
    fn render(&self, template: &str, frame: &Frame, values: Value) -> Result<SiteResponse> {
        let own = context! {
            frame => html::frame_value(Some(frame)),
            policy => html::policy(&[], Some(frame)),
            style => format!("{STYLE}\n{OWN_STYLE}"),
            stores => self.names.clone(),
        };
        let page = self.templates.get_template(template)?.render(context! { ..values, ..own })?;
        Ok(SiteResponse::html(page))
    }

    /// The list of runs.
    pub(super) fn runs(&self, query: &Query) -> Result<SiteResponse> {
        let page = self.lists.page(query)?;
        let mut frame = frame(self, "/");
        frame.scripts.push("/assets/runs.js".into());
        let values = context! { page => Value::from(Serde(page)), query => query.pairs() };
        self.render("runs.html", &frame, values)
    }

    /// The store at this position in an address.
    pub(super) fn store(&self, place: &str) -> Result<(usize, Store)> {
        let place = place.parse().ok().filter(|place: &usize| *place < self.stores.len());
        let place = place.ok_or(Failure::NotFound)?;
        Ok((place, Store::open_read_only(&self.stores[place])?))
    }

    /// The report of a run; for a running run it also follows the run.
    pub(super) fn run(&self, place: &str, run: &str) -> Result<SiteResponse> {
        let (place, store) = self.store(place)?;
        let id = store.find(run)?;
        let report = RunReport::load(&store, id)?;
        let mut frame = frame(self, "/");
        frame.origin = store
            .origin(id)?
            .map(|origin| format!("imported: run {} of {}", origin.number, origin.describe()));
        let link = |address: String, text: &str| Link { address, text: text.into(), current: false };
        let at = format!("{place}/{id}");
        if report.liveness == Liveness::Running {
            frame.scripts.push("/assets/live.js".into());
            frame.attributes.push(("live".into(), format!("/run/{at}/events")));
        } else {
            frame.links.push(link(format!("/run/{at}/file"), "Save as a file"));
        }
        frame.links.push(link(format!("/compare?a={place}:{id}"), "Compare this run"));
        if self.jobs.is_some() {
            frame.links.push(link(format!("/start?store={place}&run={id}"), "Repeat"));
        }
        Ok(SiteResponse::html(html::page(&report, Some(&frame))?))
    }

    /// The report of a run as one file.
    pub(super) fn file(&self, place: &str, run: &str) -> Result<SiteResponse> {
        let (_, store) = self.store(place)?;
        let id = store.find(run)?;
        let page = html::render(&RunReport::load(&store, id)?)?;
        Ok(SiteResponse::html(page).saved_as(&format!("kelvin-run-{id}.html")))
    }

    /// Compares two sides: `a` and `b`, or two of the values of `run`, of which the older is the baseline.
    pub(super) fn compare(&self, query: &Query) -> Result<SiteResponse> {
        let frame = frame(self, "/compare");
        let chosen: Vec<&str> = query.all("run").collect();
        let (a, b) = match chosen[..] {
            [] => (query.get("a"), query.get("b")),
            [newer, older] => (Some(older), Some(newer)),
            _ => (chosen.first().copied(), None),
        };
        let form = |why: Option<String>| {
            let values = context! { a => a, b => b, why => why, noise => NOISE * 100.0 };
            self.render("compare.html", &frame, values)
        };
        let (Some(base), Some(other)) = (a, b) else { return form(None) };
        let sides = self.side(base).and_then(|base| Ok([base, self.side(other)?]));
        let [base, other] = match sides {
            Ok(sides) => sides,
            Err(Failure::Asked(why)) => return form(Some(why)),
            Err(failure) => return Err(failure),
        };
        match compare::compare_sides(&base.side(), &other.side(), NOISE) {
            Ok(found) => Ok(SiteResponse::html(compare::page(&found, Some(&frame))?)),
            Err(error @ kelvin_report::Error::Compare(_)) => form(Some(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// The runs of a side: a selection as on the command line, after the store's position, such as
    /// "0:group:4/A".
    fn side(&self, name: &str) -> Result<LoadedSide> {
        let (place, name) = match name.split_once(':') {
            Some((place, name)) if place.bytes().all(|byte| byte.is_ascii_digit()) => (place, name),
            _ => ("0", name),
        };
        let (_, store) =
            self.store(place).map_err(|_| Failure::Asked(format!("there is no store {place}")))?;
        let selection = store.select(name).map_err(|error| Failure::Asked(error.to_string()))?;
        let runs = selection.runs.iter().map(|run| Run::load(&store, *run, &[]));
        let runs = runs.collect::<kelvin_report::Result<Vec<_>>>()?;
        Ok(LoadedSide { name: name.to_owned(), runs, notes: selection.notes })
    }

    /// The groups of all stores.
    pub(super) fn groups(&self) -> Result<SiteResponse> {
        let mut lines = Vec::new();
        for (place, path) in self.stores.iter().enumerate().filter(|(_, path)| path.exists()) {
            let groups = self.describe.list(&Store::open_read_only(path)?).map_err(Failure::Failed)?;
            lines.extend(groups.into_iter().map(|group| (place, group)));
        }
        lines.sort_by(|a, b| b.1.created.cmp(&a.1.created));
        let values = context! { lines => Value::from(Serde(lines)) };
        self.render("groups.html", &frame(self, "/groups"), values)
    }

    /// One group: its answer, its runs, and what can be compared.
    pub(super) fn group(&self, place: &str, group: &str) -> Result<SiteResponse> {
        let (place, described) = self.described(place, group)?;
        let mut frame = frame(self, "/groups");
        let address = format!("/group/{place}/{}/file", described.group);
        frame.links.push(Link { address, text: "Save as a file".into(), current: false });
        let link = |run| Some(format!("/run/{place}/{run}"));
        let number = described.group;
        let side = |treatment: &str| {
            format!("{place}:group:{number}/{}", utf8_percent_encode(treatment, NON_ALPHANUMERIC))
        };
        let compare = |a: &str, b: &str| Some(format!("/compare?a={}&b={}", side(a), side(b)));
        Ok(SiteResponse::html(group::page(&described, &link, &compare, Some(&frame))?))
    }

    /// The page of a group as one file.
    pub(super) fn group_file(&self, place: &str, group: &str) -> Result<SiteResponse> {
        let (_, described) = self.described(place, group)?;
        let name = format!("kelvin-group-{}.html", described.group);
        Ok(SiteResponse::html(group::render(&described)?).saved_as(&name))
    }

    fn described(&self, place: &str, group: &str) -> Result<(usize, group::GroupPage)> {
        let (place, store) = self.store(place)?;
        let id = GroupId(group.parse().map_err(|_| Failure::NotFound)?);
        store.group(id)?.ok_or(Failure::NotFound)?;
        let described = self.describe.page(&store, id.0).map_err(Failure::Failed)?;
        Ok((place, described))
    }

    /// The history of a branch.
    pub(super) fn history(&self, query: &Query) -> Result<SiteResponse> {
        let frame = frame(self, "/history");
        let mut branches: Vec<(usize, String, String)> = Vec::new();
        for (place, path) in self.stores.iter().enumerate().filter(|(_, path)| path.exists()) {
            let all = Store::open_read_only(path)?.history()?;
            let named = all.into_iter().map(|(_, branch, testbed)| (place, branch, testbed));
            branches.extend(named);
        }
        branches.sort();
        branches.dedup();
        let form = |why: Option<String>| {
            let values = context! { branches => branches, query => query.pairs(), why => why };
            self.render("history.html", &frame, values)
        };
        let Some(branch) = query.get("branch") else { return form(None) };
        let text = |name: &str| query.get(name).map(str::to_owned);
        let asked = history::HistoryQuery {
            branch: Some(branch.to_owned()),
            testbed: text("testbed"),
            workload: text("workload"),
            measure: text("measure"),
            tenant: text("tenant"),
            newest: 200,
        };
        let (place, store) = self.store(query.get("store").unwrap_or("0"))?;
        // For a scenario with several tenants the form selects one.
        match history::load_each(&store, &asked, &mut |_, _| {}) {
            Ok(found) if found.len() > 1 => {
                let names = found.into_iter().filter_map(|one| one.tenant).collect::<Vec<_>>().join(", ");
                form(Some(format!("the scenarios have several tenants: {names}; name one")))
            }
            Ok(found) => {
                let Some(found) = found.into_iter().next() else { return form(None) };
                let link = |run| Some(format!("/run/{place}/{run}"));
                Ok(SiteResponse::html(history::page(&found, &link, Some(&frame))?))
            }
            Err(error) => form(Some(error.to_string())),
        }
    }

    /// The pages of the findings and terms: a list of all, or one.
    pub(super) fn findings(&self, id: Option<&str>) -> Result<SiteResponse> {
        let terms = kelvin_diagnose::terms();
        let term = |id: &str| {
            terms.iter().find(|(term, _)| documents::term_address(term).eq_ignore_ascii_case(id)).copied()
        };
        let (title, page) = match id {
            Some(id) => {
                let page = kelvin_diagnose::page(id).map(|page| (id, page)).or_else(|| term(id));
                page.map(|(title, page)| (Some(title), Some(page))).ok_or(Failure::NotFound)?
            }
            None => (None, None),
        };
        let all: Vec<(&str, String)> =
            kelvin_diagnose::PAGES.iter().map(|(id, page)| (*id, documents::question(page))).collect();
        let terms: Vec<_> = terms
            .iter()
            .map(|(term, meaning)| (documents::term_address(term), *term, documents::question(meaning)))
            .collect();
        let values =
            context! { id => title, page => page.map(documents::to_html), all => all, terms => terms };
        self.render("findings.html", &frame(self, "/findings"), values)
    }

    /// The form that starts a run, initially with the specification of another run.
    pub(super) fn start_page(&self, query: &Query) -> Result<SiteResponse> {
        let mut frame = frame(self, "/start");
        frame.scripts.push("/assets/start.js".into());
        let (place, specification) = match (query.get("store"), query.get("run")) {
            (Some(place), Some(run)) => {
                let (place, store) = self.store(place)?;
                let id = store.find(run)?;
                (place, store.load(id)?.info.spec_toml)
            }
            _ => (0, String::new()),
        };
        let values =
            context! { place => place, specification => specification, allowed => self.jobs.is_some() };
        self.render("start.html", &frame, values)
    }
}
