import scores


def play(names):
    return [scores.add(name, 3) for name in names]


play(["alice", "carol"])
