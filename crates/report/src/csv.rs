//! The report as CSV (RFC 4180: commas, CRLF, quotes doubled), with one header row. Numbers have no thousands
//! separators; a field is empty if its value is unknown.

use std::collections::BTreeSet;
use std::fmt::Display;

use kelvin_measure::event::LoadPart;

use crate::model::Grid;
use crate::{LatencyRow, PointReport, RunReport, SourceReport};

/// One row per point and second. If several sources put load on a point, there is one more row per source and
/// second, and a last column with the source's name, which is empty in the rows of the total. In a closed
/// loop, the columns of an open loop are empty.
pub fn series(report: &RunReport) -> String {
    let mut out = String::new();
    let fixed = "run,point,users,second,part,width,headline_per_minute,transactions_per_minute,failed,retries,\
                 errors,mean_us,p50_us,p95_us,p99_us,max_us";
    let mut header: Vec<String> = fixed.split(',').map(Into::into).collect();
    header.extend(report.kinds.iter().map(|k| format!("{} count", k.name)));
    let added = "headline_per_second,transactions_per_second,asked_per_second,due,refused,waiting,response_p50_us,\
                 response_p95_us,response_p99_us,response_max_us,lag_p99_us,lag_max_us";
    header.extend(added.split(',').map(Into::into));
    let by_source = by_source(report);
    header.extend(by_source.then(|| "source".into()));
    line(&mut out, &header);
    for point in &report.points {
        let apart = point.sources.iter().flat_map(|of| of.seconds.iter().map(move |s| (s, Some(of))));
        for (s, source) in point.seconds.iter().map(|s| (s, None)).chain(apart) {
            let part = match s.part {
                LoadPart::RampUp => "ramp-up",
                LoadPart::Measured => "measured",
                LoadPart::Tail => "tail",
            };
            let mut fields = vec![
                text(report.run),
                text(point.point),
                users(point, source),
                text(s.second),
                part.into(),
                text(s.width),
                format!("{:.1}", s.headline_per_minute),
                format!("{:.1}", s.transactions_per_minute),
                text(s.failed),
                text(s.retries),
                text(s.errors),
            ];
            fields.extend([s.mean_us, s.p50_us, s.p95_us, s.p99_us, s.max_us].map(fine));
            fields.extend(s.good.iter().map(text));
            fields.push(format!("{:.1}", s.headline_per_second));
            fields.push(format!("{:.1}", s.transactions_per_second));
            fields.push(number(point.asked_per_second().filter(|_| source.is_none())));
            let open = s.open.as_ref();
            let counts = open.map_or([None; 3], |o| [o.due, o.refused, o.waiting]);
            fields.extend(counts.map(|count| count.map_or_else(String::new, text)));
            let times = open.map_or([None; 6], |o| {
                [
                    o.response_p50_us,
                    o.response_p95_us,
                    o.response_p99_us,
                    o.response_max_us,
                    o.lag_p99_us,
                    o.lag_max_us,
                ]
            });
            fields.extend(times.map(number));
            fields.extend(by_source.then(|| name(source)));
            line(&mut out, &fields);
        }
    }
    out
}

/// One row per execution of a TPROC-H query, in the order in which they ended. Other workloads have only the
/// header.
pub fn queries(report: &RunReport) -> String {
    let mut out = String::new();
    let header =
        "run,point,test,stream,position,query,scale,at_s,seconds,rows,digest,state,plan,parameters,detail";
    line(&mut out, &header.split(',').map(Into::into).collect::<Vec<String>>());
    for one in report.details.queries.iter().flat_map(|queries| &queries.executions) {
        let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        line(
            &mut out,
            &[
                text(report.run),
                text(one.point),
                serde_json::to_value(one.test).map(word).unwrap_or_default(),
                text(one.stream),
                text(one.position),
                one.query.clone(),
                text(one.scale),
                format!("{:.6}", one.at as f64 / 1e9),
                format!("{:.6}", one.seconds()),
                one.rows.map_or_else(String::new, text),
                one.digest.clone().unwrap_or_default(),
                serde_json::to_value(one.state).map(word).unwrap_or_default(),
                one.plan.as_ref().map(|plan| plan.digest.clone()).unwrap_or_default(),
                one.parameters.clone(),
                one.detail.clone(),
            ],
        );
    }
    out
}

/// One row per point and second of ramp-up and window. There is a column per metric, with its mean over that
/// second, then a column per wait class, with the average client sessions in it. If nothing was observed,
/// only the header with its fixed columns.
pub fn observed(report: &RunReport) -> String {
    let mut header: Vec<String> = ["run", "point", "users", "second", "part"].map(Into::into).to_vec();
    let mut out = String::new();
    let Some(evidence) = report.evidence.as_deref() else {
        line(&mut out, &header);
        return out;
    };
    let metrics: Vec<&str> = evidence.names("", "").collect();
    header.extend(metrics.iter().map(|name| (*name).to_owned()));
    let of_point = |point: &PointReport| {
        let seconds: Vec<_> = point.seconds.iter().filter(|s| s.part != LoadPart::Tail).collect();
        let (first, last) = (seconds.first()?.second, seconds.last()?.second);
        let grid = Grid::of(evidence, point.point, first, usize::try_from(last - first + 1).ok()?)?;
        let classes = grid.classes(evidence);
        Some((first, last, grid, classes))
    };
    let points: Vec<_> = report.points.iter().filter_map(|point| Some((point, of_point(point)?))).collect();
    let classes: BTreeSet<&String> = points.iter().flat_map(|(_, (.., classes))| classes.keys()).collect();
    header.extend(classes.iter().map(|class| format!("sessions {class}")));
    line(&mut out, &header);
    for (point, (first, last, grid, own)) in &points {
        let mut columns: Vec<Vec<Option<f64>>> =
            metrics.iter().map(|name| grid.means(evidence, name)).collect();
        let count = (last - first + 1) as usize;
        columns.extend(
            classes.iter().map(|class| own.get(*class).cloned().unwrap_or_else(|| vec![None; count])),
        );
        for (row, second) in (*first..=*last).enumerate() {
            let part = if second < 0 { "ramp-up" } else { "measured" };
            let mut fields =
                vec![text(report.run), text(point.point), text(point.users), text(second), part.into()];
            // `f32` is the precision with which the value was read.
            let value = |v: Option<f64>| v.map_or_else(String::new, |v| (v as f32).to_string());
            fields.extend(columns.iter().map(|column| value(column.get(row).copied().flatten())));
            line(&mut out, &fields);
        }
    }
    out
}

/// One row per point, transaction type and kind of time (response, in an open loop, and service), and one for
/// all types together. `at_least` names the times that are lower bounds. If several sources put load on a
/// point, there is one more row per source, for all its types together, and a last column as in [`series`].
pub fn summary(report: &RunReport) -> String {
    let mut out = String::new();
    let fixed = "run,label,workload,target,started,status,state,point,users,window_s,headline_per_minute,\
                 transactions_per_minute,kind,committed,rolled_back,failed,retries,mean_us,p50_us,p95_us,p99_us,\
                 p99.9_us,max_us,time,headline_per_second,transactions_per_second,asked_per_second,due,refused,\
                 waiting,client_cpu_cores,client_run_delay_ms_per_s,lag_p99_us,lag_max_us,\
                 unanswered_percent,at_least";
    let by_source = by_source(report);
    let header: Vec<String> = fixed.split(',').chain(by_source.then_some("source")).map(Into::into).collect();
    line(&mut out, &header);
    for point in &report.points {
        let service_time = report.vocabulary().time_short;
        // The transactions of different tenants have no common sum.
        let all = |row: &&LatencyRow| !report.is_scenario() || row.kind != "all";
        let response = point.response.iter().chain(point.response_all.iter().filter(all));
        let response = response.map(|row| ("response", row, None));
        let service = point.latency.iter().chain([&point.latency_all].into_iter().filter(all));
        let service = service.map(|row| (service_time, row, None));
        let time_of_sources = if point.open_loop { "response" } else { service_time };
        let apart = point.sources.iter().map(|source| (time_of_sources, &source.latency, Some(source)));
        for (time, row, source) in response.chain(service).chain(apart) {
            let throughput = source.map_or(&point.throughput, |source| &source.throughput);
            let mut fields = vec![
                text(report.run),
                report.label.clone().unwrap_or_default(),
                report.workload.clone(),
                report.target.clone(),
                text(report.started),
                format!("{:?}", report.status).to_lowercase(),
                report.judgement.state.word().to_owned(),
                text(point.point),
                users(point, source),
                format!("{:.3}", point.window_s),
                number(throughput.headline_per_minute),
                number(throughput.transactions_per_minute),
            ];
            fields.extend(latency(row));
            fields.push(time.into());
            // The schedule and the generator belong to the whole point.
            let whole = source.is_none().then_some(point);
            let schedule = whole.and_then(|point| point.schedule.as_ref());
            let paces = [
                throughput.headline_per_second,
                throughput.transactions_per_second,
                whole.and_then(PointReport::asked_per_second),
            ];
            fields.extend(paces.map(number));
            let counts = [schedule.map(|s| s.due), schedule.map(|s| s.refused), schedule.map(|s| s.waiting)];
            fields.extend(counts.map(|count| count.map_or_else(String::new, text)));
            let generator = whole.map(|point| &point.generator);
            let cores = generator.and_then(|g| g.cpu_cores);
            fields.push(cores.map_or_else(String::new, |cores| format!("{cores:.3}")));
            let lag = generator.and_then(|g| g.lag.as_ref());
            let delay = generator.and_then(|g| g.run_delay_ms_per_s);
            fields.extend([delay, lag.and_then(|l| l.p99_us), lag.and_then(|l| l.max_us)].map(number));
            let of_responses = (time == "response").then_some(row.unanswered_percent);
            fields.push(of_responses.map_or_else(String::new, |percent| format!("{percent:.3}")));
            fields.push(row.at_least.join(" "));
            fields.extend(by_source.then(|| name(source)));
            line(&mut out, &fields);
        }
    }
    out
}

/// One row per point, transaction type and statement; only the header if statements were not timed.
pub fn statements(report: &RunReport) -> String {
    let mut out = String::new();
    let fixed = "run,point,users,transaction,transactions,transaction_mean_us,statement,count,mean_us,p50_us,p95_us,\
                 p99_us,max_us,share_percent";
    line(&mut out, &fixed.split(',').map(Into::into).collect::<Vec<_>>());
    for point in &report.points {
        for group in &point.statements {
            for s in &group.statements {
                let mut fields = vec![
                    text(report.run),
                    text(point.point),
                    text(point.users),
                    group.transaction.clone(),
                    text(group.transactions),
                    number(group.transaction_mean_us),
                    s.statement.clone(),
                    text(s.count),
                ];
                fields
                    .extend([s.mean_us, s.p50_us, s.p95_us, s.p99_us, s.max_us, s.share_percent].map(number));
                line(&mut out, &fields);
            }
        }
    }
    out
}

/// One row per I/O job, file or device, and direction; only the header for a run on a database. Times are
/// completion times.
pub fn jobs(report: &RunReport) -> String {
    let mut out = String::new();
    let fixed = "run,point,job,workers,job_depth_asked,job_depth_reached,job_cpu_us,path,device,direction,ios,bytes,iops,\
                 bytes_per_s,mean_us,p50_us,p95_us,p99_us,depth_reached,failed";
    line(&mut out, &fixed.split(',').map(Into::into).collect::<Vec<_>>());
    for job in &report.details.jobs {
        for target in &job.targets {
            let mut fields = vec![
                text(report.run),
                text(job.point),
                job.job.clone(),
                text(job.workers),
                text(job.depth_asked),
                fine(job.depth_reached),
                fine(job.cpu_us),
                target.path.clone(),
                target.device.clone().unwrap_or_default(),
                target.direction.clone(),
                text(target.ios),
                text(target.bytes),
                format!("{:.1}", target.iops),
                format!("{:.1}", target.bandwidth),
            ];
            fields.extend(target.times_us.map(fine));
            fields.push(fine(target.depth_reached));
            fields.push(text(target.failed));
            line(&mut out, &fields);
        }
    }
    out
}

/// Whether there are rows per source.
fn by_source(report: &RunReport) -> bool {
    report.points.iter().any(|point| !point.sources.is_empty())
}

/// The number of users in a row; empty for a source, whose number of users is unknown.
fn users(point: &PointReport, source: Option<&SourceReport>) -> String {
    if source.is_none() { text(point.users) } else { String::new() }
}

fn name(source: Option<&SourceReport>) -> String {
    source.map_or_else(String::new, |source| source.name.clone())
}

fn latency(row: &LatencyRow) -> Vec<String> {
    let mut fields = vec![
        row.kind.clone(),
        text(row.committed),
        text(row.rolled_back),
        text(row.failed),
        text(row.retries),
    ];
    fields.extend(row.times().map(|time| fine(time.map(|time| time.value))));
    fields
}

/// A time or a depth, with more digits below 1.
fn fine(value: Option<f64>) -> String {
    match value {
        Some(value) if value < 1.0 => format!("{value:.4}"),
        value => number(value),
    }
}

fn text(value: impl Display) -> String {
    value.to_string()
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |v| format!("{v:.1}"))
}

pub(crate) fn line(out: &mut String, fields: &[String]) {
    for (i, field) in fields.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        if field.contains([',', '"', '\r', '\n']) {
            out.push('"');
            out.push_str(&field.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(field);
        }
    }
    out.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    #[test]
    fn fields_are_quoted_as_rfc_4180_says() {
        let mut out = String::new();
        super::line(&mut out, &["a".into(), "b,c".into(), "d\"e".into(), "f\ng".into(), String::new()]);
        assert_eq!(out, "a,\"b,c\",\"d\"\"e\",\"f\ng\",\r\n");
    }
}
