"""What a run goes by that an earlier one left: when a wait has to be made again."""

import pytest

from components.past import Past


@pytest.mark.parametrize(
    ("past", "more"),
    [
        (Past(), []),
        (Past({"ml-release": "0.36.1"}, {"ml-ready": ["team-ml/ml"]}), []),
        (Past({}, {"ml-ready": ["team-ml/ml"]}), ["1"]),
        (Past({"ml-release": "0.36.1"}, {"ml-ready": ["team-ml/ml", "1"]}), ["1"]),
        (Past({}, {"ml-ready": ["team-ml/ml", "1"]}), ["2"]),
    ],
    ids=["first", "usual", "uninstalled", "as before", "uninstalled again"],
)
def test_a_release_made_anew_is_waited_for_again(past, more):
    assert past.again("ml-ready", "ml-release") == more
