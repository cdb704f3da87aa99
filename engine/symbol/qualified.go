package symbol

import (
	"strconv"
	"strings"
)

// The library takes the qualifiers of a qualified name in an expression (sr, ABI
// 5.1.6.3) for types, and counts them as substitutions, so that the types that
// it gives behind them are others. It does not do that with names of members.
// So "sr 1A 1B E 1x" is given to it as the member x of the member B of A, with a
// mark before each member, and in the result the mark and the point before it
// become "::".

// memberMark is in no identifier.
const memberMark = "\x01"

// rewriteQualified gives a name in which qualified names are members. It is
// false where one cannot be followed.
func rewriteQualified(name string) (string, bool) {
	var b strings.Builder
	written := 0
	for i := 0; i < len(name); {
		switch c := name[i]; {
		case isDigit(c):
			end, ok := passIdentifier(name, i)
			if !ok {
				return "", false
			}
			i = end
		case c == 'L' && i+1 < len(name) && isLower(name[i+1]):
			// A literal: its value is not an identifier's length.
			end := strings.IndexByte(name[i:], 'E')
			if end < 0 {
				return "", false
			}
			i += end + 1
		case (c == 'S' || c == 'T' || c == 'A') && i+1 < len(name) && (name[i+1] == '_' || isDigit(name[i+1]) || c == 'S' && name[i+1] >= 'A' && name[i+1] <= 'Z'):
			end := strings.IndexByte(name[i:], '_')
			if end < 0 {
				return "", false
			}
			i += end + 1
		case strings.HasPrefix(name[i:], "sr") && i+2 < len(name) && isDigit(name[i+2]):
			members, end, ok := passQualified(name, i+2)
			if !ok {
				return "", false
			}
			b.WriteString(name[written:i])
			b.WriteString(members)
			written, i = end, end
		default:
			i++
		}
	}
	b.WriteString(name[written:])
	return b.String(), true
}

// passQualified reads the qualifiers and the name that follow sr, and gives them
// as members and where they end.
func passQualified(name string, i int) (members string, end int, ok bool) {
	var parts []string
	for i < len(name) && name[i] != 'E' {
		end, ok := passSimple(name, i)
		if !ok {
			return "", 0, false
		}
		parts = append(parts, name[i:end])
		i = end
	}
	if i+1 >= len(name) || !isDigit(name[i+1]) {
		return "", 0, false // operators and destructors
	}
	end, ok = passIdentifier(name, i+1)
	if !ok {
		return "", 0, false
	}
	parts = append(parts, name[i+1:end])
	var b strings.Builder
	for range len(parts) - 1 {
		b.WriteString("dt")
	}
	b.WriteString(parts[0])
	for _, part := range parts[1:] {
		digits := 0
		for isDigit(part[digits]) {
			digits++
		}
		n, _ := strconv.Atoi(part[:digits])
		b.WriteString(strconv.Itoa(n + len(memberMark)))
		b.WriteString(memberMark)
		b.WriteString(part[digits:])
	}
	return b.String(), end, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// passIdentifier returns where the identifier at i ends.
func passIdentifier(name string, i int) (end int, ok bool) {
	n := 0
	for i < len(name) && isDigit(name[i]) && n <= len(name) {
		n = n*10 + int(name[i]-'0')
		i++
	}
	return i + n, n <= len(name)-i
}

// passSimple returns where an identifier with its template arguments ends.
func passSimple(name string, i int) (end int, ok bool) {
	if i >= len(name) || !isDigit(name[i]) {
		return 0, false
	}
	if i, ok = passIdentifier(name, i); !ok {
		return 0, false
	}
	return passArguments(name, i, 0)
}

// maxArguments bounds how deep template arguments nest that are followed.
const maxArguments = 64

// passArguments returns where the template arguments at i end, if there are any.
func passArguments(name string, i, depth int) (end int, ok bool) {
	if i >= len(name) || name[i] != 'I' {
		return i, true
	}
	return passUntilE(name, i+1, depth)
}

// passUntilE returns where the types and literals from i on end, after an E.
func passUntilE(name string, i, depth int) (end int, ok bool) {
	if depth == maxArguments {
		return 0, false
	}
	for i < len(name) && name[i] != 'E' {
		switch name[i] {
		case 'J': // a pack
			i, ok = passUntilE(name, i+1, depth+1)
		case 'L':
			end := strings.IndexByte(name[i:], 'E')
			ok = end > 1 && isLower(name[i+1])
			i += end + 1
		default:
			i, ok = passType(name, i, depth+1)
		}
		if !ok {
			return 0, false
		}
	}
	return i + 1, i < len(name)
}

// passType returns where the type at i ends. Of the rarer ones it knows none.
func passType(name string, i, depth int) (end int, ok bool) {
	for i < len(name) && strings.IndexByte("rVKPRO", name[i]) >= 0 {
		i++
	}
	if i >= len(name) || depth >= maxArguments {
		return 0, false
	}
	switch c := name[i]; {
	case isDigit(c):
		return passSimple(name, i)
	case c == 'u':
		return 0, false
	case isLower(c):
		return i + 1, true
	case c == 'S' && i+1 < len(name) && name[i+1] == 't':
		return passSimple(name, i+2)
	case c == 'S' && i+1 < len(name) && isLower(name[i+1]):
		return passArguments(name, i+2, depth)
	case c == 'S' || c == 'T':
		end := strings.IndexByte(name[i:], '_')
		if end < 0 {
			return 0, false
		}
		return passArguments(name, i+end+1, depth)
	case c == 'F':
		return passUntilE(name, i+1, depth)
	case c == 'N':
		for i++; i < len(name) && name[i] != 'E'; {
			if i, ok = passType(name, i, depth+1); !ok {
				return 0, false
			}
		}
		return i + 1, i < len(name)
	case strings.HasPrefix(name[i:], "Dp"):
		return passType(name, i+2, depth+1)
	case c == 'D' && i+1 < len(name) && strings.IndexByte("nisuac", name[i+1]) >= 0:
		return i + 2, true
	}
	return 0, false
}
