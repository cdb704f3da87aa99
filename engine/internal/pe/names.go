// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"cmp"
	"strings"
)

// WithoutConvention cuts from a name of C what tells its calling convention on 32-bit x86:
// _cdecl, _stdcall@4, @fastcall@8, vectorcall@@16.
func WithoutConvention(name string) string {
	if name == "" || name[0] == '?' {
		return name
	}
	base := name
	if i := strings.LastIndexByte(name, '@'); i >= 0 && strings.Trim(name[i+1:], "0123456789") == "" {
		base = name[:i]
		if vectorcall, ok := strings.CutSuffix(base, "@"); ok {
			return cmp.Or(vectorcall, name)
		}
	}
	if base != "" && (base[0] == '_' || base[0] == '@') {
		base = base[1:]
	}
	return cmp.Or(base, name)
}
