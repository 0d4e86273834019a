"""`course grade`: a class is run, judged and recorded."""
