// SPDX-License-Identifier: Apache-2.0

package object

import "strings"

// merged are directories of the root that many systems keep in /usr instead, with a
// symbolic link at the old place. A target, a package or a debug file has either of the two names,
// and an unpacked image may lack the link.
var merged = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libo32", "/libilp32"}

// otherUsr returns the other name of a path of a target in a merged directory: /usr/lib/x for
// /lib/x, and /lib/x for /usr/lib/x.
func otherUsr(name string) (other string, ok bool) {
	rest, isUsr := strings.CutPrefix(name, "/usr/")
	if isUsr {
		rest = "/" + rest
	} else {
		rest = name
	}
	for _, dir := range merged {
		if after, found := strings.CutPrefix(rest, dir); found && (after == "" || after[0] == '/') {
			if isUsr {
				return rest, true
			}
			return "/usr" + rest, true
		}
	}
	return "", false
}
