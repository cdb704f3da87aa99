// Types and constants as language runtimes have them: see make.sh.
enum State { State_new = 1, State_running = 2, Other = 9 };
namespace runtime {
enum class Kind : int { kind_a = 5, kind_b = -6 };
}
struct base {
	long first;
	int second;
};
struct thread : base {
	union {
		int small;
		struct {
			char tag;
			long wide;
		};
	};
	struct {
		long pc, sp;
	} saved;
	thread *next;
	unsigned bits : 3;
};
typedef const volatile thread thread_alias;
struct declared;
thread head;
volatile thread_alias *alias;
declared *unknown;
State state;
runtime::Kind kind;
