// SPDX-License-Identifier: Apache-2.0

package value

import (
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
)

// typeText returns a type's name as people write it.
func typeText(t *dwarf.Type) string { return shortType(fullName(t, 0)) }

// fullName returns a type's name with the arguments of its template, which clang leaves out
// with -gsimple-template-names.
func fullName(t *dwarf.Type, depth int) string {
	name := t.String()
	plain, err := t.Plain()
	if err != nil || plain != t || t.Kind != dwarf.KindStructure || strings.Contains(name, "<") || depth > maxBases {
		return name
	}
	parts, err := t.Parts()
	if err != nil || len(parts.Arguments) == 0 {
		return name
	}
	var args []string
	size := 0
	for i := range parts.Arguments {
		text := "?"
		if n, ok := templateNumber(parts, uint64(i)); ok {
			text = strconv.FormatInt(int64(n), 10)
		} else if element, err := templateArgument(parts, uint64(i)); err == nil {
			text = fullName(element, depth+1)
		}
		if size += len(text); size > maxFullName {
			text = "..."
		}
		args = append(args, text)
		if size > maxFullName {
			break
		}
	}
	return name + "<" + strings.Join(args, ", ") + ">"
}

// maxFullName bounds the joined arguments, in bytes.
const maxFullName = 4096

// shortType returns a C++ type's name as people write it: without the namespaces for versions
// of the library, and without default template arguments.
func shortType(name string) string {
	short, rest := shortened(name, 0)
	if rest != "" {
		return name // it is not written like a name
	}
	return short
}

// aliases are the names of types that are templates with default arguments.
var aliases = map[string]string{
	"std::basic_string<char>": "std::string", "std::basic_string<wchar_t>": "std::wstring", "std::basic_string<char8_t>": "std::u8string",
	"std::basic_string<char16_t>": "std::u16string", "std::basic_string<char32_t>": "std::u32string",
	"std::basic_string_view<char>": "std::string_view", "std::basic_string_view<wchar_t>": "std::wstring_view",
}

// defaults are templates that are default arguments: the allocator for any type, the others
// with the same first argument.
var defaults = []string{"std::allocator<", "std::char_traits<", "std::default_delete<", "std::less<", "std::hash<", "std::equal_to<"}

// maxShortened bounds nested templates.
const maxShortened = 64

// shortened shortens the text up to a comma or a closing bracket, and returns the text after
// it.
func shortened(name string, depth int) (short, rest string) {
	end := strings.IndexAny(name, "<>,(")
	if end < 0 || depth > maxShortened {
		return withoutVersion(name), ""
	}
	template := withoutVersion(name[:end])
	switch name[end] {
	case '(': // of a function: unchanged
		return template, name[end:]
	case '>', ',':
		return strings.TrimRight(template, " "), name[end:]
	}
	var args []string
	for rest = name[end+1:]; ; rest = strings.TrimPrefix(rest[1:], " ") {
		var arg string
		arg, rest = shortened(rest, depth+1)
		if !isDefault(arg, args) {
			args = append(args, arg)
		}
		if rest == "" || rest[0] != ',' {
			break
		}
	}
	if rest == "" || rest[0] != '>' {
		return name, "(" // not a name
	}
	short = template + "<" + strings.Join(args, ", ") + ">"
	if alias, ok := aliases[short]; ok {
		short = alias
	}
	end = strings.IndexAny(rest[1:], ">,")
	if end < 0 {
		return short + rest[1:], ""
	}
	return short + strings.TrimRight(rest[1:1+end], " "), rest[1+end:]
}

// isDefault reports whether an argument is a default after others.
func isDefault(arg string, before []string) bool {
	if len(before) == 0 {
		return false
	}
	if arg == "alloc::alloc::Global" {
		return true
	}
	for i, d := range defaults {
		if strings.HasPrefix(arg, d) && (i == 0 || arg == d+before[0]+">") {
			return true
		}
	}
	return false
}
