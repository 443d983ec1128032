//! How many connections a second there may be from each address (KIP-612): `connection_creation_rate`, as it is stored of
//! IPs. An address without a rate of its own goes by the default; where there is neither, it has no limit.

use std::collections::BTreeMap;

const KEY: &str = "connection_creation_rate";

/// What is stored of all IPs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionRates {
    /// Of every address without a rate of its own; none: no limit.
    pub default: Option<usize>,
    /// Of single addresses, by address or host name as it is stored.
    pub own: BTreeMap<String, usize>,
}

impl ConnectionRates {
    /// Takes what is stored of one IP, or as the default of all (`None`).
    ///
    /// # Errors
    /// If the rate is no number, in one line; what was in force remains so.
    pub(super) fn set(&mut self, ip: Option<&str>, stored: &BTreeMap<String, String>) -> Result<(), String> {
        let rate = match stored.get(KEY).map(|value| value.trim().parse::<u32>()) {
            None => None,
            Some(Ok(rate)) => Some(usize::try_from(rate).unwrap_or(usize::MAX)),
            Some(Err(error)) => {
                return Err(format!("{KEY} of {}: {error}", ip.unwrap_or("all addresses")));
            }
        };
        match (ip, rate) {
            (None, rate) => self.default = rate,
            (Some(ip), Some(rate)) => {
                self.own.insert(ip.to_owned(), rate);
            }
            (Some(ip), None) => {
                self.own.remove(ip);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(rate: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(KEY.to_owned(), rate.to_owned())])
    }

    #[test]
    fn a_rate_is_of_one_address_or_of_all_others_until_it_is_taken_away() {
        let mut rates = ConnectionRates::default();
        rates.set(Some("10.0.0.1"), &stored("5")).unwrap();
        rates.set(None, &stored(" 7 ")).unwrap();
        assert_eq!(rates, ConnectionRates { default: Some(7), own: [("10.0.0.1".to_owned(), 5)].into() });
        rates.set(Some("10.0.0.1"), &BTreeMap::new()).unwrap();
        rates.set(None, &BTreeMap::new()).unwrap();
        assert_eq!(rates, ConnectionRates::default());
    }

    #[test]
    fn what_is_no_number_leaves_the_rate_as_it_was() {
        let mut rates = ConnectionRates::default();
        rates.set(None, &stored("7")).unwrap();
        for nonsense in ["many", "-1", "1.5", ""] {
            assert!(rates.set(None, &stored(nonsense)).unwrap_err().contains("all addresses"), "{nonsense}");
        }
        assert_eq!(rates.default, Some(7));
    }
}
