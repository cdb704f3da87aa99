// SPDX-License-Identifier: Apache-2.0

// Package peers compares the speed of unwindd's packages with that of other
// libraries. It has benchmarks only.
package peers
