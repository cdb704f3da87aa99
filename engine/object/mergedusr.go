// SPDX-License-Identifier: Apache-2.0

package object

import "strings"

// merged are directories of the root that many systems keep in /usr instead, with a
// symbolic link at the old place. Which of the two names a target, a package or a
// debug file has depends on which came first, and an unpacked image may lack the link.
var merged = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libo32", "/libilp32"}

// otherUsr is the other name of a path of a target in a merged directory: /usr/lib/x
// of /lib/x, and /lib/x of /usr/lib/x.
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
