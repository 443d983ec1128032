//! What everybody may do while no authorizer is configured, as bit fields: bit n stands for the ACL operation
//! of code n (KIP-430).

/// Read, write, create, delete, alter, describe, describe and alter configs.
pub(crate) const TOPIC_OPERATIONS: i32 = 0x0df8;
/// Create, alter, describe, cluster action, describe and alter configs, idempotent write.
pub(crate) const CLUSTER_OPERATIONS: i32 = 0x1fa0;

/// Read, delete, describe.
pub(crate) const GROUP_OPERATIONS: i32 = 0x0148;

/// What stands in place of the operations when nobody asked for them.
pub(crate) const OPERATIONS_NOT_ASKED_FOR: i32 = i32::MIN;

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(codes: &[u32]) -> i32 {
        codes.iter().map(|code| 1 << code).sum()
    }

    #[test]
    fn the_fields_have_the_bits_of_the_operations_of_their_resource() {
        assert_eq!(TOPIC_OPERATIONS, bits(&[3, 4, 5, 6, 7, 8, 10, 11]));
        assert_eq!(GROUP_OPERATIONS, bits(&[3, 6, 8]));
        assert_eq!(CLUSTER_OPERATIONS, bits(&[5, 7, 8, 9, 10, 11, 12]));
    }
}
