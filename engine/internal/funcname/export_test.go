// SPDX-License-Identifier: Apache-2.0

package funcname

// IsBalanced is isBalanced.
var IsBalanced = isBalanced
