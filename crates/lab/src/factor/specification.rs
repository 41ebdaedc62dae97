//! Factors that are values of the run's specification.

use super::{Bound, Factor, FactorError, FactorKind, Level, LevelValue};
use kelvin_run::Spec;
use kelvin_run::spec::ResetMethod;

/// The specification with the level's value at `path`. It is converted to the form of the file and back, so that the
/// value is checked as if the file contained it.
pub(super) fn apply_level(
    spec: &Spec,
    factor: &Factor,
    level: &Level,
    path: &str,
) -> Result<Spec, FactorError> {
    let refuse = |why: String| {
        FactorError::Unusable(format!(
            "factor {:?} at {:?}: {path} cannot have this value: {why}",
            factor.name, level.name
        ))
    };
    let mut table: toml::Table =
        toml::from_str(&spec.to_toml()).map_err(|error| refuse(error.to_string()))?;
    let value = match &level.value {
        LevelValue::Bool(value) => toml::Value::Boolean(*value),
        LevelValue::Integer(value) => toml::Value::Integer(*value),
        LevelValue::Number(value) => toml::Value::Float(*value),
        LevelValue::Text(value) => toml::Value::String(value.clone()),
        LevelValue::Command(_) => return Err(refuse("a command is not a value".into())),
    };
    let (tables, key) = path.rsplit_once('.').map_or((None, path), |(tables, key)| (Some(tables), key));
    let mut place = &mut table;
    for name in tables.into_iter().flat_map(|tables| tables.split('.')) {
        let inner = place.entry(name).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        place = inner.as_table_mut().ok_or_else(|| refuse(format!("{name} is a value, not a table")))?;
    }
    place.insert(key.into(), value);
    let text = toml::to_string(&table).map_err(|error| refuse(error.to_string()))?;
    Spec::parse(&text, "specification").map_err(|error| refuse(error.to_string()))
}

/// Refuses levels that are invalid for the specification, and factors that are invalid for its target. To be called
/// before the first run, not in the middle of a study.
pub fn check_factors(factors: &[Factor], spec: &Spec) -> Result<(), FactorError> {
    super::check(factors)?;
    let mut specs = vec![spec.clone()];
    for factor in factors {
        if let FactorKind::Spec(path) = &factor.how {
            let each = factor.levels.iter().map(|level| apply_level(spec, factor, level, path));
            specs.extend(each.collect::<Result<Vec<_>, _>>()?);
        }
    }
    // The base's target is irrelevant where a factor selects it.
    if factors.iter().any(|factor| factor.how == FactorKind::Spec("target".into())) {
        specs.remove(0);
    }
    // Several users or rates in one run have no single value to compare.
    specs.iter().try_for_each(|spec| crate::bench::suits(spec).map_err(FactorError::Unusable))?;
    let memory = factors.iter().find(|factor| matches!(factor.how, FactorKind::Bind(Bound::Memory(_))));
    if let Some(factor) = memory
        && specs.iter().any(|spec| {
            spec.target.is_managed() && matches!(spec.reset.how, ResetMethod::Auto | ResetMethod::Files)
        })
    {
        // The factor is applied before the reset, and the server started by the reset is another process.
        return Err(FactorError::Unusable(format!(
            "factor {:?} binds memory, but a reset by files restarts the server without that binding; use \
             how = \"template\" in [run.reset]",
            factor.name
        )));
    }
    for factor in factors.iter().filter(|factor| factor.is_of_server()) {
        for spec in &specs {
            let target = spec.target.target().map_err(|error| FactorError::Unusable(error.to_string()))?;
            if !target.has_server_settings() {
                return Err(FactorError::Unusable(format!(
                    "factor {:?} changes a server, but the target is {target}",
                    factor.name
                )));
            }
            if factor.how == FactorKind::HugePages && !target.has_huge_page_setting() {
                return Err(FactorError::Unusable(format!(
                    "factor {:?} sets PostgreSQL's huge_pages, but the target is {target}; reserve the pages with \
                     kernel = \"vm.nr_hugepages\", and set large_pages in the server's option file",
                    factor.name
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factor::Side;
    use kelvin_run::spec::{Work, WorkloadName};

    fn factor(path: &str, levels: Vec<LevelValue>) -> Factor {
        let levels = levels.into_iter().map(Level::of).collect();
        Factor::new("f", levels, FactorKind::Spec(path.into())).unwrap()
    }

    #[test]
    fn a_value_is_put_where_the_path_says_and_checked_as_a_files() {
        let spec = Spec::new(WorkloadName::TprocC);
        let users = factor("load.users", vec![LevelValue::Integer(4), LevelValue::Integer(16)]);
        let changed = apply_level(&spec, &users, users.level("16").unwrap(), "load.users").unwrap();
        assert_eq!(changed.load.users.numbers(), [16]);
        let houses = factor("tproc-c.warehouses", vec![LevelValue::Integer(2), LevelValue::Integer(3)]);
        let changed =
            apply_level(&changed, &houses, houses.level("3").unwrap(), "tproc-c.warehouses").unwrap();
        let Work::TprocC(options) = &changed.work else { panic!("{changed:?}") };
        assert_eq!((options.warehouses, changed.load.users.numbers()), (Some(3), &[16][..]));
        check_factors(&[users, houses], &spec).unwrap_err(); // Two of the same name.
        for (path, value, expected) in [
            ("load.userz", LevelValue::Integer(1), "unknown field `userz`"),
            ("load.users", LevelValue::Integer(0), "0 users generate no load"),
            ("load.users.x", LevelValue::Integer(1), "users is a value, not a table"),
            ("load.duration", LevelValue::Text("soon".into()), "not a valid duration"),
        ] {
            let wrong = factor(path, vec![value, LevelValue::Integer(7)]);
            let error = check_factors(&[wrong], &spec).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_servers_factor_needs_a_server() {
        let mut spec = Spec::new(WorkloadName::TprocC);
        let text = |text: &str| LevelValue::Text(text.into());
        let levels = vec![Level::of(text("on")), Level::of(text("off"))];
        let setting = Factor::new("s", levels, FactorKind::Setting("fsync".into())).unwrap();
        let error = check_factors(std::slice::from_ref(&setting), &spec).unwrap_err().to_string();
        assert!(error.contains("the target is sqlite"), "{error}");
        let targets = factor("target", vec![text("postgres:15"), text("postgres:16")]);
        check_factors(&[setting.clone(), targets], &spec).unwrap();
        spec.target = "postgres".parse().unwrap();
        check_factors(&[setting], &spec).unwrap();
        let nodes = vec![Level::of(text("0")), Level::of(text("1"))];
        let memory = [Factor::new("m", nodes, FactorKind::Bind(Bound::Memory(Side::Server))).unwrap()];
        check_factors(&memory, &spec).unwrap();
        spec.reset.how = ResetMethod::Auto;
        assert!(
            check_factors(&memory, &spec).unwrap_err().to_string().contains("\"template\" in [run.reset]")
        );
    }
}
