// SPDX-License-Identifier: Apache-2.0

package pdbtypes

// templateArguments writes the arguments of a template by the name of the class.
func (u *unit) templateArguments(string) {}
